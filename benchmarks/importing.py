"""From nothing to a saved step: `import keepstep; open(); save()` in a new process, over a Python that does nothing."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from time import perf_counter

from benchmarks.folder import ROOT, fresh_folder
from benchmarks.peers import DBOS, PLAIN
from benchmarks.row import Row, at_most
from benchmarks.setting import Setting

KEEPSTEP = """
import keepstep
store = keepstep.open({path!r})
store.save("job-1", {{"n": 3}}, workflow="wf")
"""
LOADED = (
    KEEPSTEP
    + """
import sys
store.close()
print(sorted({{"asyncio", "logging", "inspect", "typing", "dataclasses"}} & set(sys.modules)))
"""
)
READ = """
import keepstep
assert keepstep.open({path!r}).load("job-1").state == {{"n": 3}}
"""
PEERS = {
    PLAIN: """
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.sqlite import SqliteSaver
with SqliteSaver.from_conn_string({path!r}) as saver:
    checkpoint = {{**empty_checkpoint(), "channel_values": {{"n": 3}}}}
    saver.put({{"configurable": {{"thread_id": "job-1", "checkpoint_ns": ""}}}}, checkpoint, {{}}, {{}})
""",
    DBOS: """
from dbos import DBOS
DBOS(config={{"name": "job", "system_database_url": "sqlite:///" + {path!r}, "log_level": "ERROR",
              "run_admin_server": False}})
step = DBOS.step()(lambda: {{"n": 3}})
workflow = DBOS.workflow()(lambda: step())
DBOS.launch()
workflow()
DBOS.destroy()
""",
}


def rows(setting: Setting) -> Iterator[Row]:
    """Milliseconds, and what was imported."""
    repeat = setting.times(15, 5)
    with fresh_folder(setting.folder) as folder:
        _check(folder)
        found = _over_bare(folder, KEEPSTEP, repeat)
        loaded = _run(LOADED.format(path=str(folder / "loaded.db")))
        peers = setting.beside(PEERS, lambda program: median(_over_bare(folder, program, setting.times(5, 2))))
    yield Row(
        "import keepstep; open(); save() over bare Python",
        f"{median(found):.0f} ms",
        median(found),
        "ms",
        at_most(150),
        {name: f"{one:.0f} ms" for name, one in peers.items()},
        found,
    )
    has_asyncio = "'asyncio'" in loaded
    yield Row(
        "  asyncio imported by it",
        "yes" if has_asyncio else "no",
        float(has_asyncio),
        "times",
        at_most(0),
    )


def _check(folder: Path) -> None:
    """What the program saves is there; the bytecode of what it imports is written on the way."""
    path = str(folder / "checked.db")
    _run(KEEPSTEP.format(path=path))
    _run(READ.format(path=path))


def _over_bare(folder: Path, program: str, repeat: int) -> list[float]:
    """How many milliseconds the program takes longer than one that does nothing."""
    found: list[float] = []
    for number in range(-1, repeat):
        bare = _millis("pass")
        full = _millis(program.format(path=str(folder / f"{abs(hash(program))}-{number}.db")))
        if number >= 0:  # the first one writes bytecode
            found.append(full - bare)
    return found


def _millis(program: str) -> float:
    start = perf_counter()
    _run(program)
    return (perf_counter() - start) * 1e3


def _run(program: str) -> str:
    command = [sys.executable, "-c", program]
    return subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout
