"""The command line: `keepstep VERB`, one module per verb. It needs the extra `cli`."""

from __future__ import annotations

import sys
from importlib import import_module

MISSING = """\
The command line needs typer and rich, which are not installed here. Install them with

    pip install 'keepstep[cli]'
"""


def main() -> None:
    """What the script `keepstep` and `python -m keepstep` do."""
    try:
        import_module("typer")
    except ModuleNotFoundError as error:
        if error.name != "typer":
            raise
        sys.stderr.write(MISSING)
        raise SystemExit(1) from None
    from keepstep.cli.verbs import run

    run()
