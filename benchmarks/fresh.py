"""Runs a function in a process of its own, so that no memory, import or thread of another measure is in it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

from benchmarks.folder import ROOT


def in_fresh_process(function: Callable[..., Any], **arguments: Any) -> Any:
    """What the function returns there; arguments and result pass as JSON."""
    name = f"{function.__module__}:{function.__name__}"
    command = [sys.executable, "-m", "benchmarks.fresh", name, json.dumps(arguments)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def find(name: str) -> Callable[..., Any]:
    """The function that is called `module:function`."""
    module, _, function = name.partition(":")
    return getattr(import_module(module), function)


if __name__ == "__main__":
    print(json.dumps(find(sys.argv[1])(**json.loads(sys.argv[2]))))
