"""The verbs of the command line, put together."""

from __future__ import annotations

import sys

import typer

from keepstep.cli.worker import worker
from keepstep.errors import KeepstepError

app = typer.Typer(
    name="keepstep",
    help="Durable checkpoints for agent workflows.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,  # its tracebacks show what variables hold
)
app.command()(worker)


@app.callback()
def keepstep() -> None:
    """Durable checkpoints for agent workflows."""


def run() -> None:
    """Carry out what the command line says; an error of keepstep is told without a traceback."""
    try:
        app()
    except KeepstepError as error:
        sys.stderr.write(f"keepstep: {error}\n")
        raise SystemExit(1) from None
