"""Finding the flows that a command line names: `module:flow`, or `module` for all flows in it."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from keepstep.errors import BadInput, shown
from keepstep.flows.flow import Flow


def load_flows(names: Sequence[str]) -> list[Flow]:
    """The flows that are named, each once; the current folder is looked in first."""
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    found: list[Flow] = []
    for name in names:
        found += [flow for flow in _load(name) if flow not in found]
    return found


def _load(name: str) -> list[Flow]:
    module_name, colon, path = name.partition(":")
    if not module_name or (colon and not path):
        raise BadInput(f"{shown(name)} names no flow; write module:flow, or module for all flows in it.")
    module = _module(module_name)
    if not colon:
        flows = [one for one in vars(module).values() if isinstance(one, Flow)]
        if not flows:
            raise BadInput(
                f"There is no flow in {module_name}; make one with keepstep.Flow(...) or @keepstep.flow(...)."
            )
        return flows
    one = _attribute(module, path)
    if not isinstance(one, Flow):
        raise BadInput(f"{name} is a {type(one).__name__}, no flow; {_flows_in(module)}.")
    return [one]


def _module(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        # What is missing may also be something that the module imports; then its traceback tells.
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise
        raise BadInput(
            f"There is no module {name!r}, neither in {Path.cwd()} nor installed. Start the worker in the folder of "
            "your code, or set PYTHONPATH."
        ) from None


def _attribute(module: ModuleType, path: str) -> Any:
    one: Any = module
    for part in path.split("."):
        if not hasattr(one, part):
            raise BadInput(f"{module.__name__} has no {path!r}; {_flows_in(module)}.")
        one = getattr(one, part)
    return one


def _flows_in(module: ModuleType) -> str:
    names = [name for name, one in vars(module).items() if isinstance(one, Flow)]
    return f"its flows are {', '.join(names)}" if names else "it has no flows"
