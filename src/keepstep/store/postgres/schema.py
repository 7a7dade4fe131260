"""What is in the schema: made when it is empty, brought up to date when it is older, refused when it is newer."""

from __future__ import annotations

from keepstep.errors import CannotOpen, NewerFormat, ReadOnly
from keepstep.store.postgres.lines import Lines
from keepstep.store.postgres.port import Step
from keepstep.store.postgres.writing import lock_key

FORMAT = 1
"""The version of everything that stands in sql/schema, one folder per step, and of what the columns hold."""
SECONDS = 600.0
"""A step to a newer format may have to go through every run."""


async def prepare(lines: Lines, *, read_only: bool) -> None:
    """Make the schema ready for use; two who do it at once both succeed."""
    try:
        await _prepare(lines, read_only=read_only)
    except ReadOnly as error:
        raise _may_not(lines, str(error)) from error


async def _prepare(lines: Lines, *, read_only: bool) -> None:
    version = await _version(lines)
    if version > FORMAT and not read_only:
        raise NewerFormat(
            f"{lines.place.url} was written by a newer keepstep (format {version}; this one writes {FORMAT}). "
            "Upgrade keepstep, or open it with read_only=True."
        )
    if version < FORMAT and read_only:
        if version == 0:
            raise CannotOpen(f"There is no store at {lines.place.url}. Check the schema; only writers create one.")
        raise CannotOpen(f"{lines.place.url} is of the older format {version}. Open it for writing once.")
    if version < FORMAT:
        await _migrate(lines)


async def _version(lines: Lines) -> int:
    """The format of what is there; 0 when there is no store."""
    place, sql = lines.place, lines.sql
    names = {"schema": f'"{place.schema}"', "meta": f'"{place.schema}".meta'}
    [[(_, has_store, _, _)]] = await lines.read(Step(sql("look_around"), names))
    if not has_store:
        return 0
    [found] = await lines.read(Step(sql("read_format")))
    return int(found[0][0]) if found else 0


async def _migrate(lines: Lines) -> None:
    """Go from the format that is there to ours, in one transaction, when it is our turn."""
    sql, schema = lines.sql, lines.place.schema
    names = {"schema": f'"{schema}"', "meta": f'"{schema}".meta'}
    async with lines.using(lines.writer) as line:
        turn = [Step("BEGIN"), Step(sql("take_turn"), {"key": lock_key(schema, "format")}, SECONDS)]
        found = await lines.again(line, turn)
        [[(has_schema, has_store, _, _)]] = await line.send([Step(sql("look_around"), names)], within=True)
        version = 0
        if has_store:
            [found] = await line.send([Step(sql("read_format"))], within=True)
            version = int(found[0][0]) if found else 0
        steps = [] if has_schema else [Step(sql("create_schema"))]
        for number in range(version + 1, FORMAT + 1):
            steps += [Step(one, seconds=SECONDS) for one in sql.schema_step(number)]
        if version < FORMAT:
            steps.append(Step(sql("put_format"), {"format": str(FORMAT)}))
        await line.send([*steps, Step("COMMIT")], within=True)


def _may_not(lines: Lines, said: str) -> CannotOpen:
    place = lines.place
    return CannotOpen(
        f"Cannot open {place.url}: the role lacks rights. Have an owner of the database run GRANT CREATE ON DATABASE "
        f'... TO ..., or CREATE SCHEMA "{place.schema}" AUTHORIZATION ...; or, if the schema is there, grant what '
        f"docs/howto/postgresql.md lists for a role that only uses it. It was said: {said}"
    )
