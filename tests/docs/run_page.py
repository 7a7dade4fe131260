"""Runs a page as its reader would: every Python block in order, in one namespace, in the folder it is started in.

    python run_page.py PAGE

- What a block prints must be what the `text` block behind it says (`...` is anything); without one it is silent.
- ```python file=NAME is written to that file; files named test_*.py are run by pytest at the end.
- ```python no-run is a fragment: it is not run, but must be Python.
- ```sh run is run by a shell, and what it prints is compared like what Python prints.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import shlex
import subprocess
import sys
import types
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.docs.pages import Block, blocks_in


def main(page: Path) -> int:
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    sys.path[0:0] = [str(Path.cwd())]
    blocks = blocks_in(page)
    tests: list[str] = []
    for block, after in zip(blocks, [*blocks[1:], None], strict=True):
        if (block.language, block.options) == ("sh", "run"):
            compare(page, block, after, shell(block.text))
        if block.language != "python":
            continue
        code = compile("\n" * (block.line - 1) + block.text, str(page), "exec")
        if block.options.startswith("file="):
            name = block.options.removeprefix("file=")
            Path(name).write_text(block.text, "utf-8")
            tests += [name] if name.startswith("test_") else []
        elif block.options != "no-run":
            assert not block.options, f"{page}:{block.line - 1}: what is {block.options!r}?"
            run(page, block, after, code, vars(module))
    return pytest(tests) if tests else 0


def run(page: Path, block: Block, after: Block | None, code: types.CodeType, names: dict[str, object]) -> None:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, names)
    compare(page, block, after, printed.getvalue())


def shell(commands: str) -> str:
    """What a reader sees. One plain command is started without a shell, which would remark on how it ended."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    plain = "|" not in commands and commands.count("\n") == 1
    done = subprocess.run(
        shlex.split(commands) if plain else commands,
        shell=not plain,
        env={**os.environ, "PATH": path, "PYTHONUNBUFFERED": "1"},
        text=True,
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    return done.stdout


def compare(page: Path, block: Block, after: Block | None, printed: str) -> None:
    said = after.text if after is not None and after.language == "text" else ""
    if not doctest.OutputChecker().check_output(said, printed, doctest.ELLIPSIS):
        raise AssertionError(f"{page}:{block.line}: the block printed\n{printed}\nand the page says\n{said}")


def pytest(tests: list[str]) -> int:
    import pytest

    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        result = pytest.main(["-q", "-W", "error", "-p", "no:cacheprovider", *tests])
    if result:
        sys.stderr.write(printed.getvalue())
    return int(result)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
