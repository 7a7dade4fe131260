import re
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT, anchors_in, links_in, name_of, prose_of

PATHS = re.compile(r"`((?:[\w.-]+/)+[\w.-]*)`")
KEEPSTEP = ROOT / "src/keepstep"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_to_files_and_headings_that_are_there(page):
    broken = []
    for link in links_in(page):
        if re.match(r"https?://", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or not target.is_relative_to(ROOT) or (anchor and anchor not in anchors_in(target)):
            broken.append(link)

    assert not broken


def test_every_page_can_be_reached_from_the_readme():
    reached: set[Path] = set()
    waiting = [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in reached or page not in PAGES:
            continue
        reached.add(page)
        waiting += [(page.parent / link.partition("#")[0]).resolve() for link in links_in(page)]

    assert reached == set(PAGES)


@pytest.mark.parametrize("name", ["ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_files_that_are_named_are_there(name):
    named = PATHS.findall(prose_of(ROOT / name))

    missing = [path for path in named if not (ROOT / path).exists() and not (KEEPSTEP / path).exists()]

    assert named or name == "CHANGELOG.md"
    assert not missing


def test_every_promise_of_the_readme_links_to_a_test_that_is_there():
    promises = re.search(
        r"^## What it promises$(.+?)^What each", prose_of(ROOT / "README.md"), re.MULTILINE | re.DOTALL
    )
    assert promises
    lines = re.split(r"^\d+\. ", promises[1], flags=re.MULTILINE)[1:]

    linked = [re.findall(r"\]\((tests/[\w/]+(?:\.py)?)\)", line) for line in lines]

    assert len(lines) >= 6
    assert all(linked)
    assert all((ROOT / path).exists() for paths in linked for path in paths)
