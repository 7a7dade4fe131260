import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT, blocks_in, name_of

RUNNER = Path(__file__).with_name("run_page.py")
WITH_CODE = [page for page in PAGES if any(block.language == "python" for block in blocks_in(page))]


@pytest.mark.parametrize("page", WITH_CODE, ids=name_of)
def test_the_code_on_a_page_runs_and_prints_what_the_page_says(page, tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-W", "ignore:This process", str(RUNNER), str(page)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    said = done.stdout + done.stderr
    assert not said, f"\n{said}"
    assert done.returncode == 0


def test_every_block_says_what_it_is():
    known = {"python", "text", "sh", "sql", "json", "mermaid", "toml", ""}

    odd = [
        (name_of(page), block.line, block.language)
        for page in PAGES
        for block in blocks_in(page)
        if block.language not in known
    ]

    assert not odd


def test_the_readme_shows_code_within_its_first_thirty_lines():
    first = next(block for block in blocks_in(ROOT / "README.md") if block.language == "python")

    assert first.line + first.text.count("\n") <= 30


def test_commands_on_the_pages_exist():
    makefile = (ROOT / "Makefile").read_text("utf-8")
    lines = [
        line
        for page in PAGES
        for block in blocks_in(page)
        if block.language == "sh"
        for line in block.text.splitlines()
    ]
    targets = {line.split()[1] for line in lines if line.startswith("make ")}

    assert targets
    assert not [target for target in targets if f"\n{target}: " not in makefile]


def test_a_block_that_prints_something_else_than_the_page_says_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```python\nprint(2)\n```\n\n```text\n1\n```\n")

    done = subprocess.run(
        [sys.executable, str(RUNNER), str(page)], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert done.returncode
    assert f"{page}:2: the block printed" in done.stderr


def test_a_test_on_a_page_that_fails_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```python file=test_it.py\ndef test_it():\n    assert 1 == 2\n```\n")

    done = subprocess.run(
        [sys.executable, str(RUNNER), str(page)], cwd=tmp_path, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTEST_ADDOPTS": ""},
    )  # fmt: skip

    assert done.returncode == 1
    assert "assert 1 == 2" in done.stderr
