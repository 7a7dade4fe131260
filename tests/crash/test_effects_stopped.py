"""A worker is stopped inside a tool and wakes after another has taken its run over: it is a witness, and no more."""

from __future__ import annotations

import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import keepstep
from tests.crash.effect_programs import carry_out
from tests.crash.outside import Outside, Tools
from tests.crash.processes import Report, Worker
from tests.crash.shared_clock import SharedClock
from tests.crash.test_sigstop import LEASE_SECONDS, open_at
from tests.handles import open_behind
from tests.places import Place

CALL = "toolu_1"
HOWS = ["returned", "raised", "doubted"]


class Sleeper(Tools):
    """Its payment happens, or not, and then it sleeps until it is told."""

    def __init__(self, outside: Outside, report: Report, hear: Any, how: str) -> None:
        super().__init__(outside)
        self._sleep = partial(_sleep, report, hear)
        self._how = how

    @keepstep.tool(name="Tools.pay")
    def pay(self, who: str, amount: int) -> str:
        if self._how == "raised":
            self._sleep()
            raise keepstep.NotDone("the card was declined")
        result = super().pay(who, amount)
        self._sleep()
        if self._how == "doubted":
            raise TimeoutError("no reply")
        return result


def _sleep(report: Report, hear: Any) -> None:
    report("asleep")
    hear()


async def pay_once(run: Any, tools: Tools) -> None:
    """One payment."""
    paid = await run.using(key=CALL, unsure="raise").once(tools.pay, "ada", 420)
    await run.save(paid)
    await run.finish(paid)


def sleep_in_a_tool(  # noqa: PLR0917 - a pipe carries them
    report: Report, hear: Any, url: str, clock: Path, path: Path, mode: str, how: str
) -> None:
    """Pay, and be surprised by what has happened in the meantime."""
    with _open(url, clock, mode) as store:
        tools = Sleeper(Outside(path), report, hear, how)
        try:
            carry_out(store, "run", pay_once, tools)
        except (keepstep.ClaimLost, keepstep.EffectInDoubt) as error:
            report(type(error).__name__)


def take_over(report: Report, hear: Any, url: str, clock: Path, path: Path) -> None:
    """Go on with the run of the sleeper: be refused, wait, and try again under the same claim."""
    tools = Tools(Outside(path, by=1))
    with open_at(url, clock) as store, store.run("run") as run:
        for is_last in (False, True):
            try:
                paid = run.using(key=CALL, unsure="raise").once(tools.pay, "ada", 420)
            except keepstep.EffectInDoubt:
                report("in doubt")
                if not is_last:
                    hear()
            else:
                run.save(paid)
                run.finish(paid)
                report("paid")
                return


def _open(url: str, clock: Path, mode: str) -> Any:
    if mode == "sync":
        return open_at(url, clock)
    return open_behind(url, lease=LEASE_SECONDS, clock=SharedClock(clock))


def _kinds(store: keepstep.Store) -> list[str]:
    """What stands in the log since the takeover, without who claims and leaves."""
    engine: Any = store._session.engine
    from keepstep.log.records import decode_head
    from keepstep.runtime.inline import drive

    records = [decode_head(one.head) for one in drive(engine.store.records("run"))]
    return [one.kind for one in records if one.kind not in ("opened", "claimed", "released")]


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize("kind", ["sqlite", "dir"])
def test_what_a_stopped_worker_knows_settles_the_doubt_of_its_successor(kind, mode, how, folder):
    url, clock, outside = f"{kind}:{folder / 'store'}", SharedClock(folder / "clock"), Outside(folder / "outside")
    args = (url, clock.path, outside.path)
    with Worker(sleep_in_a_tool, *args, mode, how) as sleeper, open_at(url, clock.path) as store:
        assert sleeper.hear() == "asleep"
        sleeper.stop()
        clock.turn(LEASE_SECONDS + 1)
        with Worker(take_over, *args) as successor:
            assert successor.hear() == "in doubt"
            before = _kinds(store)
            sleeper.tell("your call has ended")
            sleeper.go_on()
            assert sleeper.rest() == ["ClaimLost"]

            new = [] if how == "doubted" else ["witnessed", "settled"]
            assert _kinds(store) == [*before, *new]
            successor.tell("try again")
            assert successor.rest() == ["in doubt" if how == "doubted" else "paid"]

        by = [line.by for line in outside.lines()]
        assert by == ([1] if how == "raised" else [0])
        (effect,) = store.effects("run")
        assert effect.status == ("began" if how == "doubted" else "returned")
        assert store.verify("run").ok


@pytest.mark.parametrize("happened", [True, False])
@pytest.mark.parametrize("kind", ["sqlite", "dir"])
def test_a_stopped_worker_that_wakes_after_the_doubt_was_settled_is_evidence_only(kind, happened, folder):
    url, clock, outside = f"{kind}:{folder / 'store'}", SharedClock(folder / "clock"), Outside(folder / "outside")
    with (
        Worker(sleep_in_a_tool, url, clock.path, outside.path, "sync", "returned") as sleeper,
        open_at(url, clock.path) as store,
    ):
        assert sleeper.hear() == "asleep"
        sleeper.stop()
        clock.turn(LEASE_SECONDS + 1)
        store.settle("run", CALL, happened=happened, result="told by a person", by="ada")
        carry_out(store, "run", pay_once, Tools(Outside(outside.path, by=1)))
        before = _kinds(store)
        look = store.look("run")

        sleeper.tell("your call has ended")
        sleeper.go_on()

        assert sleeper.rest() == ["ClaimLost"]
        assert _kinds(store) == [*before, "witnessed"]
        after = store.look("run")
        assert (after.status, after.state, after.result) == (look.status, look.state, look.result)
        assert after.result == ("told by a person" if happened else "pay ['ada', 420]")
        assert [line.by for line in outside.lines()] == ([0] if happened else [0, 1])  # a person wanted it so
        assert store.verify("run").ok


def test_a_witness_who_comes_while_the_outside_is_being_asked_is_believed(folder):
    place = Place("memory", "sync", folder)
    first, second = place.open(), place.open()
    outside = Outside(folder / "outside")
    asleep, wake = threading.Event(), threading.Event()
    tools = Sleeper(outside, lambda *_: asleep.set(), wake.wait, "returned")
    told: list[type[BaseException]] = []

    def sleep() -> None:
        try:
            carry_out(first, "run", pay_once, tools)
        except keepstep.ClaimLost as error:
            told.append(type(error))

    thread = threading.Thread(target=sleep)
    thread.start()
    asleep.wait()
    place.freeze(first)

    def look_too_early(doubt: keepstep.Doubt) -> Any:
        wake.set()
        thread.join()
        return keepstep.NotDone  # it had looked before

    with second.run("run") as run:
        using = run.using(key=CALL, reconcile=look_too_early, unsure="raise")
        paid = using.once(Tools(Outside(outside.path, by=1)).pay, "ada", 420)

    assert told == [keepstep.ClaimLost]
    assert paid == "pay ['ada', 420]"
    assert [line.by for line in outside.lines()] == [0]
    place.close()


def test_a_key_of_hex_digits_can_be_settled_by_its_name(store):
    def pay() -> None:
        raise TimeoutError("no reply")

    key = "0123456789abcdef" * 2
    with store.run("run", "w") as run, pytest.raises(keepstep.EffectInDoubt) as caught:
        _using(run, key, pay)
    store.settle("run", caught.value.key, happened=True, result="paid")

    with store.run("run") as run:
        assert _using(run, key, pay) == "paid"


def _using(run: Any, key: str, function: Any) -> Any:
    from tests.handles import LOOP

    found = run.using(key=key, unsure="raise").once(function)
    return LOOP.run(found) if hasattr(found, "__await__") else found
