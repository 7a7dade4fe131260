"""Every SQL statement, read once from the .sql files beside this module, one statement each, named by its verb.

Statements that list runs come in variants: by which column, in which direction, with how many tags. The variants are
made of the same few words, never of anything a user gave, and a test explains each of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent / "sql"


@cache
def sql(name: str) -> str:
    """A statement by its name."""
    return _read(FOLDER / f"{name}.sql")


@cache
def directed(name: str, *, newest_first: bool) -> str:
    """A statement that reads a log in one direction or the other."""
    return sql(name).format(direction="DESC" if newest_first else "ASC")


@cache
def listing(name: str, order: str, *, newest_first: bool, also_tagged: int = 0) -> str:
    """A statement that lists runs, ordered by when they were `created` or `changed`, with so many tags to have.

    Those that list by one column only name it themselves.
    """
    tags = [_part("also_tagged").format(n=n) for n in range(also_tagged)]
    return sql(name).format(
        column=f"{order}_us",
        order=order,
        direction="DESC" if newest_first else "ASC",
        past="<" if newest_first else ">",
        filters="\n  ".join([_part("filters"), *tags]),
    )


def schema() -> list[str]:
    """The statements that make an empty store: tables first, then indexes."""
    return [_read(path) for path in sorted((FOLDER / "schema").glob("*.sql"))]


def every() -> Iterator[tuple[str, str]]:
    """Every statement with its name, each variant once."""
    for path in sorted(FOLDER.glob("*.sql")):
        name, text = path.stem, sql(path.stem)
        if "{filters}" in text:
            for order in ("created", "changed"):
                for newest_first in (True, False):
                    for also_tagged in (0, 2):
                        yield name, listing(name, order, newest_first=newest_first, also_tagged=also_tagged)
        elif "{direction}" in text:
            yield name, directed(name, newest_first=True)
            yield name, directed(name, newest_first=False)
        else:
            yield name, text


@cache
def _part(name: str) -> str:
    return _read(FOLDER / "parts" / f"{name}.sql")


def _read(path: Path) -> str:
    lines = path.read_text("utf-8").splitlines()
    return "\n".join(line for line in lines if not line.startswith("--"))
