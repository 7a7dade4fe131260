"""Draw what the pages show of the code from the code itself. Run it when a test says that a page is out of step."""  # noqa: INP001 - a script, no package

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from keepstep.log import fold, records
from keepstep.log.lifecycle import ABSENT, BY_ANYBODY, STATUSES, TABLE, leads_to
from keepstep.store.postgres import statements as postgres
from keepstep.store.sqlite import statements

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "keepstep"
BEGIN, END = "<!-- drawn by docs/draw_tables.py: {} -->\n", "<!-- end of {} -->\n"

LEADS = {"rests": ("ready", "paused", "sleeping"), "wakes": ("ready",)}
"""The cells whose status depends on what the record says."""
TYPES = {
    "str": "text",
    "None": "nil",
    "TagValue": "text, int, float or bool",
    "list": "array",
    "dict": "map",
    "tuple": "array",
}


def draw(page: str) -> str:
    """The page, with everything that is drawn in its place."""
    for name, make in DRAWN.items():
        if BEGIN.format(name) in page:
            before, rest = page.split(BEGIN.format(name))
            _, after = rest.split(END.format(name))
            page = f"{before}{BEGIN.format(name)}\n{make()}\n{END.format(name)}{after}"
    return page


def _table(header: list[str], rows: list[list[str]]) -> str:
    return "".join(f"| {' | '.join(row)} |\n" for row in [header, ["---"] * len(header), *rows])


# --- folders ---------------------------------------------------------------------------------------------------------

LAYERS = ("cli", "testing", "api", "worker", "flows", "runtime", "engine", "store", "codec", "log")
WIDTH = 104


def folders() -> str:
    """The folders of the package, the first line of each one's theory, and its modules."""
    lines: list[str] = []
    for layer in LAYERS:
        doc = ast.get_docstring(ast.parse((PACKAGE / layer / "__init__.py").read_text("utf-8"))) or ""
        lines += _beside(f"{layer}/", doc.splitlines()[0])
        names = [f"{one.name}/" if one.is_dir() else one.stem for one in sorted((PACKAGE / layer).iterdir())]
        lines += _beside("", " · ".join(name for name in names if not name.startswith("_")))
    return "```\n" + "\n".join(lines) + "\n```\n"


def _beside(name: str, text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=f"{name:<10}", subsequent_indent=" " * 10, break_on_hyphens=False)


# --- the lifecycle ---------------------------------------------------------------------------------------------------


def lifecycle_table() -> str:
    """Which record may follow in which status."""
    statuses = (ABSENT, *STATUSES)
    rows: list[list[str]] = []
    for kind in _kinds():
        cells = [leads_to(kind, status) or "" for status in statuses]
        rows.append([f"`{kind}`{'*' * (kind in BY_ANYBODY)}", *("stays" if cell == "=" else cell for cell in cells)])
    return _table(["record", *statuses], rows)


def lifecycle_picture() -> str:
    """Every record that changes a status."""
    moves: dict[tuple[str, str], list[str]] = {}
    for kind in _kinds():
        for status in (ABSENT, *STATUSES):
            for after in _after(kind, status):
                moves.setdefault((status, after), []).append(kind)
    lines = ["stateDiagram-v2", "    direction LR"]
    for (before, after), by in moves.items():
        lines.append(f"    {'[*]' if before == ABSENT else before} --> {after}: {', '.join(by)}")
    return "```mermaid\n" + "\n".join(lines) + "\n```\n"


def _kinds() -> list[str]:
    return [line.split()[0] for line in TABLE.strip().splitlines()[1:]]


def _after(kind: str, status: str) -> list[str]:
    cell = leads_to(kind, status)
    if cell is None or cell == "=":
        return []
    return [after for after in LEADS.get(cell, (cell,)) if after != status]


# --- records and rows ------------------------------------------------------------------------------------------------


def record_fields() -> str:
    """Every kind of record, with its fields in the order in which they are stored."""
    rows: list[list[str]] = []
    for kind, cls in records.KINDS.items():
        rows.append([f"**`{kind}`**", "", "", inspect.getdoc(cls) or ""])
        rows += [["", *field] for field in _fields(cls)]
    return _table(["kind", "field", "type", "meaning"], rows)


def common_fields() -> str:
    """What every record begins with."""
    return _table(["field", "type", "meaning"], [list(field) for field in _fields(records.Record)])


def row_fields() -> str:
    """The row, in the order in which it is stored."""
    return _table(["field", "type", "meaning"], [list(field) for field in _fields(fold.Fields)])


def wait_fields() -> str:
    """What stands in the row's `waits`."""
    return _table(["field", "type", "meaning"], [list(field) for field in _fields(fold.Wait)])


def _fields(cls: type[Any]) -> Iterator[tuple[str, str, str]]:
    """Name, type and meaning of the fields that a class adds, in order."""
    body = ast.parse(inspect.getsource(cls)).body[0]
    assert isinstance(body, ast.ClassDef)
    for node, after in zip(body.body, [*body.body[1:], None], strict=True):
        if (
            isinstance(node, ast.AnnAssign)
            and isinstance(node.target, ast.Name)
            and "ClassVar" not in ast.unparse(node.annotation)
        ):
            said = after.value.value if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) else ""
            yield f"`{node.target.id}`", _type(node.annotation), " ".join(str(said).split())


def _type(node: ast.expr) -> str:
    """A type in the words of MessagePack."""
    if isinstance(node, ast.BinOp):
        return f"{_type(node.left)} or {_type(node.right)}"
    if isinstance(node, ast.Subscript):
        inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        words = [_type(one) for one in inner]
        outer = ast.unparse(node.value)
        return {"list": "array of {}", "dict": "map {}"}.get(outer, "[{}]").format(
            (" → " if outer == "dict" else ", ").join(words)
        )
    return TYPES.get(ast.unparse(node), ast.unparse(node))


# --- SQLite ----------------------------------------------------------------------------------------------------------


def sqlite_tables() -> str:
    """The statements that make the tables, with their remarks."""
    return _statements("create_*.sql")


def sqlite_indexes() -> str:
    """The statements that make the indexes."""
    return _statements("index_*.sql")


def _statements(pattern: str) -> str:
    texts = [path.read_text("utf-8").strip() for path in sorted((statements.FOLDER / "schema").glob(pattern))]
    between = "\n\n" if any("\n" in text for text in texts) else "\n"
    return f"```sql\n{between.join(re.sub(r'$', ';', text) for text in texts)}\n```\n"


def postgres_schema() -> str:
    """The statements that make a schema in PostgreSQL, as somebody else may run them for a role that may not."""
    schema = postgres.Statements("keepstep")
    steps = [*schema.schema_step(1), schema("put_format").replace("%(format)s", "'1'")]
    return '```sql\nCREATE SCHEMA "keepstep";\n' + "\n".join(f"{one};" for one in steps) + "\n```\n"


DRAWN: dict[str, Callable[[], str]] = {
    "folders": folders,
    "lifecycle table": lifecycle_table,
    "lifecycle picture": lifecycle_picture,
    "common fields": common_fields,
    "record fields": record_fields,
    "row fields": row_fields,
    "wait fields": wait_fields,
    "SQLite tables": sqlite_tables,
    "SQLite indexes": sqlite_indexes,
    "PostgreSQL schema": postgres_schema,
}

if __name__ == "__main__":
    for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")):
        path.write_text(draw(path.read_text("utf-8")), "utf-8")
