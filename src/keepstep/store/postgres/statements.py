"""Every SQL statement, read once from the .sql files beside this module, one statement each, named by its verb.

Statements that list runs are put together from the parts that a query needs. They are made of the same few words,
never of anything a user gave (the schema's name is checked where the URL is read), and a test explains each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent / "sql"


class Statements:
    """The statements for one schema."""

    def __init__(self, schema: str) -> None:
        self.schema = schema
        self._texts: dict[object, str] = {}

    def __call__(self, name: str) -> str:
        """A statement by its name."""
        return self._kept(name, lambda: self._filled(_read(FOLDER / f"{name}.sql")))

    def directed(self, name: str, *, newest_first: bool) -> str:
        """A statement that reads a log in one direction or the other."""
        direction = "DESC" if newest_first else "ASC"
        return self._kept((name, direction), lambda: self._filled(_part_of(name), direction=direction))

    def listing(
        self,
        name: str,
        sources: Sequence[str],
        filters: Sequence[str],
        column: str,
        *,
        newest_first: bool,
        tags: int = 0,
    ) -> str:
        """A statement that lists runs: from these sources, with these filters and so many tags, in this order."""
        key = (name, *sources, "", *filters, column, newest_first, tags)

        def make() -> str:
            words = {"direction": "DESC" if newest_first else "ASC", "past": "<" if newest_first else ">"}
            words |= {"column": column, "now": _part("now"), "schema": self._name}
            first = 1 if "by_tag" in sources else 0
            lines = [_part(f"where_{one}") for one in filters]
            lines += [_part("where_tag").replace("{n}", str(n)) for n in range(first, tags)]
            conditions = "\n        ".join(one.format(**words) for one in lines)
            parts = [_part(one).format(filters=conditions, **words) for one in sources]
            return _part_of(name).format(sources="\n    UNION ALL\n".join(parts), **words)

        return self._kept(key, make)

    def schema_step(self, number: int) -> list[str]:
        """The statements that lead from one format to the next: tables first, then indexes."""
        return [self._filled(_read(path)) for path in sorted((FOLDER / "schema" / str(number)).glob("*.sql"))]

    @property
    def _name(self) -> str:
        return f'"{self.schema}"'

    def _filled(self, text: str, **words: str) -> str:
        return text.format(schema=self._name, channel=f'"{channel(self.schema)}"', now=_part("now"), **words)

    def _kept(self, key: object, make: Callable[[], str]) -> str:
        found = self._texts.get(key)
        if found is None:
            found = self._texts[key] = make()
        return found


def channel(schema: str) -> str:
    """Where changes of a schema are told."""
    return f"keepstep_{schema}"[:63]


def names() -> Iterator[str]:
    """Every statement that is no list."""
    for path in sorted(FOLDER.glob("*.sql")):
        if "{sources}" not in path.read_text("utf-8"):
            yield path.stem


@cache
def _part(name: str) -> str:
    return _read(FOLDER / "parts" / f"{name}.sql")


@cache
def _part_of(name: str) -> str:
    return _read(FOLDER / f"{name}.sql")


def _read(path: Path) -> str:
    lines = path.read_text("utf-8").splitlines()
    return "\n".join(line for line in lines if not line.startswith("--"))
