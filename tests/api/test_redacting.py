"""A redaction hook: what is written in place of what the user gave."""

from contextlib import suppress

import pytest

import keepstep
from keepstep.codec.envelope import unpack
from keepstep.store.base import Query
from tests.handles import act

SECRET = "tok-4242"


def scrub(value, what):
    """The same value without the secret."""
    if isinstance(value, str):
        return value.replace(SECRET, "[gone]")
    if isinstance(value, dict):
        return {scrub(key, what): scrub(one, what) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(scrub(one, what) for one in value)
    return value


def written(store):
    """Every byte that is stored of every run, unpacked."""

    async def read(engine):
        page = await engine.store.rows(Query(), None, 100)
        records = [one for row in page.rows for one in await engine.store.records(row.run_id)]
        return b"".join(one.head + (b"" if one.body is None else unpack(one.body)) for one in records)

    return act(store, read)


def told(place, **how):
    """An open store, and what its hook was told that values are."""
    seen = []

    def redact(value, what):
        seen.append(what)
        return scrub(value, what)

    return place.open(redact=redact, **how), seen


def fail():
    raise TimeoutError(SECRET)


def declined():
    raise keepstep.NotDone(SECRET)


def give(what):
    return {"given": what}


pytestmark = pytest.mark.usefixtures("whole_logs")


def everything(store):
    """A run that has the secret wherever a user can give a value."""
    with store.run("r", "w") as run:
        run.save({"key": SECRET, SECRET: ["deep", (SECRET,)]})
        assert run.memo(give, SECRET) == {"given": SECRET}
        assert run.using(key="k", undo=give_back).once(give, SECRET) == {"given": SECRET}
        with suppress(keepstep.NotDone):
            run.using(key="n").once(declined)
        with suppress(keepstep.EffectInDoubt):
            run.using(key="d", unsure="raise").once(fail)
        run.note({"progress": SECRET})
        run.ask(f"May I use {SECRET}?", str, default=SECRET)
    store.answer(store.inbox().items[0].id, f"yes, {SECRET}", by="mia")
    store.settle("r", "d", happened=True, result=SECRET)
    store.send("r", "paid", SECRET)
    with store.run("r") as run:
        assert run.receive("paid") == "[gone]"
        run.using(key="a", approve=f"Give {SECRET}?").once(give, SECRET)
    store.answer(store.inbox().items[0].id, {"approve": True, "arguments": {"what": f"other {SECRET}"}})
    with store.run("r") as run:
        run.using(key="a", approve=f"Give {SECRET}?").once(give, SECRET)
        run.finish({"result": SECRET})
    store.note("r", SECRET)
    store.fork("r", edits={"more": SECRET}, id="f")
    with suppress(ValueError), store.run("f"):
        raise ValueError(SECRET)
    store.save("plain", {"n": SECRET}, workflow="w")
    store.cancel("plain", reason=SECRET)
    with suppress(keepstep.UndoFailed):
        store.rollback("r", 1, keep=["a", "d"], undo={"give": fail})
    store.rollback("r", 1, keep=["a", "d"], not_undone=["k"])


def give_back(done):
    assert done.args == ["[gone]"]  # what was written is all there is
    return SECRET


def test_nothing_of_what_the_hook_takes_out_is_written(place):
    store, seen = told(place)

    everything(store)

    assert SECRET.encode() not in written(store)
    assert written(store).count(b"[gone]") > 20
    kinds = {"state", "arguments", "result", "error", "question", "answer", "message", "note", "reason"}
    assert set(seen) == kinds


def test_without_a_hook_all_of_it_is_written(place):
    store = place.open()
    with store.run("r", "w") as run:
        run.save({"key": SECRET})

    assert SECRET.encode() in written(store)


def test_whoever_resumes_gets_what_was_written(place):
    store, _ = told(place)
    state = {"key": SECRET}
    with store.run("r", "w") as run:
        run.save(state)
        assert run.state is state
        assert run.using(key="k").once(give, SECRET) == {"given": SECRET}

    with store.run("r") as run:
        assert run.state == {"key": "[gone]"}
        assert run.using(key="k").once(give, SECRET) == {"given": "[gone]"}
    assert state == {"key": SECRET}


def test_calls_are_told_apart_by_what_was_given(place):
    store, _ = told(place)
    with store.run("r", "w") as run:
        run.using(key="k").once(give, SECRET)
        with pytest.raises(keepstep.ArgumentsChanged):
            run.using(key="k").once(give, "[gone]")


def broken(value, what):
    raise LookupError(SECRET)


def test_what_the_hook_raises_on_is_not_written(place):
    store = place.open(redact=broken)
    with store.run("r", "w") as run:
        before = store.look("r").digest
        for act_on in (
            lambda: run.save({}),
            lambda: run.note(1),
            lambda: run.finish(1),
            lambda: run.using(key="k").once(give, 1),
            lambda: run.ask("Go on?"),
        ):
            with pytest.raises(keepstep.CannotStore, match="redact= raised LookupError") as caught:
                act_on()
            assert isinstance(caught.value.__cause__, LookupError)
            assert SECRET not in str(caught.value)
        assert store.look("r").digest == before
    for act_on in (
        lambda: store.save("other", {}, workflow="w"),
        lambda: store.send("r", "paid", 1),
        lambda: store.cancel("r", reason="why"),
    ):
        with pytest.raises(keepstep.CannotStore):
            act_on()
    assert store.load("other") is None


def test_a_call_has_happened_though_the_hook_raises_on_its_result(place):
    def redact(value, what):
        return broken(value, what) if what == "result" else value

    store, calls = place.open(redact=redact), []
    with store.run("r", "w") as run:
        for _ in range(2):
            with pytest.raises(keepstep.CannotStore, match="redact="):
                run.using(key="k").once(calls.append, 1)

    assert calls == [1]
    assert [one.status for one in store.effects("r")] == ["returned"]


def test_a_run_has_failed_though_the_hook_raises_on_its_error(place):
    store = place.open(redact=broken)
    with suppress(ValueError), store.run("r", "w"):
        raise ValueError(SECRET)

    look = store.look("r")
    assert look.status == "failed"
    assert look.error["type"] == "builtins.ValueError"
    assert SECRET.encode() not in written(store)


def test_arguments_have_to_stay_a_list_and_a_dict(place):
    store = place.open(redact=lambda value, what: "gone" if what == "arguments" else value)
    with store.run("r", "w") as run, pytest.raises(keepstep.CannotStore, match="as it gets them"):
        run.using(key="k").once(give, 1)

    assert store.effects("r") == []


def test_an_answer_that_the_hook_makes_invalid_is_refused(place):
    store = place.open(redact=lambda value, what: None if what == "answer" else value)
    with store.run("r", "w") as run:
        run.ask("How many?", int)
    [gate] = store.inbox().items

    with pytest.raises(keepstep.InvalidAnswer):
        store.answer(gate.id, 5)
    assert store.look("r").status == "paused"


async def awaited(value, what):
    return value


@pytest.mark.parametrize("redact", ["scrub", 5, awaited])
def test_what_is_no_plain_function_is_refused(place, redact):
    with pytest.raises(keepstep.BadInput, match="redact="):
        place.open(redact=redact)
