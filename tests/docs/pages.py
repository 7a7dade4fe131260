"""The project's pages: their code blocks, headings and links."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])

_FENCE = re.compile(r"^```(?P<info>.*)$")
_HEADING = re.compile(r"^#{1,6} (?P<text>.+)$")
_LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)")


class Block(NamedTuple):
    """A fenced block. `line` is where its first line of text stands, counted from 1."""

    language: str
    options: str
    line: int
    text: str


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks_in(page: Path) -> list[Block]:
    found: list[Block] = []
    info: str | None = None
    start = 0
    lines = page.read_text("utf-8").splitlines()
    for number, line in enumerate(lines, 1):
        fence = _FENCE.match(line)
        if fence is None:
            continue
        if info is None:
            info, start = fence["info"], number + 1
        else:
            language, _, options = info.partition(" ")
            found.append(Block(language, options, start, "\n".join(lines[start - 1 : number - 1]) + "\n"))
            info = None
    assert info is None, f"{page} ends inside a block"
    return found


def prose_of(page: Path) -> str:
    """The page without its blocks."""
    prose: list[str] = []
    inside = False
    for line in page.read_text("utf-8").splitlines():
        if _FENCE.match(line):
            inside = not inside
        elif not inside:
            prose.append(line)
    return "\n".join(prose)


def links_in(page: Path) -> list[str]:
    return [found["target"] for found in _LINK.finditer(prose_of(page))]


def headings_in(page: Path) -> list[str]:
    return [found["text"] for line in prose_of(page).splitlines() if (found := _HEADING.match(line))]


def anchors_in(page: Path) -> set[str]:
    """What a link can name behind `#`: the headings as the usual renderers turn them into anchors."""
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings_in(page))
    return {one.replace(" ", "-") for one in plain}


def table_under(page: Path, heading: str) -> list[list[str]]:
    """The cells of the first table under a heading, without its header."""
    lines = iter(prose_of(page).splitlines())
    for line in lines:
        found = _HEADING.match(line)
        if found and found["text"] == heading:
            break
    else:
        raise AssertionError(f"{name_of(page)} has no heading {heading!r}")
    rows: list[list[str]] = []
    for line in lines:
        if line.startswith("|"):
            rows.append([cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
        elif rows or _HEADING.match(line):
            break
    return rows[2:]
