"""What the processes of the effect tests do: carry a run as far as they live, and tell what is recorded."""

from __future__ import annotations

import random
import time
from functools import partial
from pathlib import Path
from typing import Any

import keepstep
from tests.crash.effect_programs import Program, carry_out, until_done
from tests.crash.outside import Outside, Tools, settle
from tests.crash.processes import Report
from tests.crash.saving import LEASE
from tests.handles import open_behind

VISITS_MAX = 20
"""A run that is in doubt so often in one life of a process is going round in circles."""
CALL_SECONDS_MOST = 0.002


class SlowTools(Tools):
    """Every call takes a moment before and after it happens, in which the process can be killed."""

    def __init__(self, outside: Outside) -> None:
        super().__init__(outside)
        self._chance = random.Random(outside.by)

    def model(self, prompt: str) -> str:
        self._take()
        answer = super().model(prompt)
        self._take()
        return answer

    def do(self, tool: str, *args: Any, once_per_key: bool = False) -> str:
        self._take()
        result = super().do(tool, *args, once_per_key=once_per_key)
        self._take()
        return result

    def _take(self) -> None:
        time.sleep(self._chance.random() * CALL_SECONDS_MOST)


def work(  # noqa: PLR0917 - a pipe carries them
    report: Report, hear: Any, url: str, mode: str, run_id: str, path: Path, number: int, steps: int
) -> None:
    """Go on with a run until so many steps, settling what an earlier process left in doubt."""
    report("at", keepstep.__file__)
    store: Any = keepstep.open(url, lease=LEASE) if mode == "sync" else open_behind(url, lease=LEASE)
    go_on(report, store, run_id, Outside(path, by=number), steps)
    store.close()


def go_on(report: Report, store: Any, run_id: str, outside: Outside, steps: int) -> None:
    """The same with an open store."""
    program = partial(_busy, report, steps)
    for _ in range(VISITS_MAX):
        try:
            carry_out(store, run_id, program, SlowTools(outside))
        except keepstep.EffectInDoubt as doubt:
            settle(store, run_id, doubt, outside)
            report("doubt", doubt.key)
        else:
            return
    raise AssertionError(f"in doubt {VISITS_MAX} times")


async def _busy(report: Report, steps: int, run: Any, tools: Tools) -> None:
    step = run.state or 0
    while step < steps:
        await run.memo(tools.model, f"plan {step}")
        report("answer", f"plan {step}")
        await run.using(key=f"call {step}", unsure="raise").once(tools.pay, f"ada {step}", 420)
        await run.using(unsure="raise").once(tools.mail, f"bob {step}")
        await run.using(unsure="raise").once(tools.mail, f"eve {step}")
        await run.gather(
            lambda step=step: run.using(unsure="raise").once(tools.reserve, f"seat {step}"),
            lambda step=step: run.using(unsure="raise").once(tools.reserve, f"bed {step}"),
        )
        await run.using(idempotent=True, unsure="raise").once(tools.upload, f"file {step}")
        await run.using(reconcile=tools.look_for, unsure="raise").once(tools.transfer, f"eve {step}")
        await until_done(run.using(key=f"order {step}", unsure="raise"), tools.order, f"book {step}")
        step += 1
        await run.save(step)
        report("saved", step)
    await run.finish(step)


# --- a turn of two calls, of which the second does not end ------------------------------------------------------------


class StuckTools(Tools):
    """Mail is sent, and then there is no reply."""

    def __init__(self, outside: Outside, report: Report, hear: Any) -> None:
        super().__init__(outside)
        self._report = report
        self._hear = hear

    @keepstep.tool(name="Tools.mail")
    def mail(self, who: str) -> str:
        result = super().mail(who)
        self._report("mailed")
        self._hear()
        return result


async def two_calls(run: Any, tools: Tools) -> None:
    """Two calls in one turn."""
    paid = await run.using(unsure="raise").once(tools.pay, "ada", 420)
    mailed = await run.using(unsure="raise").once(tools.mail, "bob")
    await run.save([paid, mailed])
    await run.finish("done")


async def two_calls_at_once(run: Any, tools: Tools) -> None:
    """The same, at once."""
    both = await run.gather(
        lambda: run.using(unsure="raise").once(tools.pay, "ada", 420),
        lambda: run.using(unsure="raise").once(tools.mail, "bob"),
    )
    await run.save(both)
    await run.finish("done")


def stick_in_the_second(report: Report, hear: Any, url: str, program: Program, path: Path) -> None:
    """Make the first call, and never come back from the second."""
    with keepstep.open(url, lease=LEASE) as store:
        carry_out(store, "run", program, StuckTools(Outside(path), report, hear))
