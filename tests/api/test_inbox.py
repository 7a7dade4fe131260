"""Every open question of every run, in one list."""

import random
import threading
from contextlib import suppress
from urllib.parse import quote

import pytest

import keepstep


def ask(store, run_id, prompt="Go on?", workflow="w", **how):
    """The id of a gate that is open now."""
    with store.run(run_id, workflow) as run:
        run.ask(prompt, **how)
    return store.look(run_id).gates[-1]


def ids(page):
    return [one.id for one in page.items]


def pages(store, **how):
    """All gates, page by page."""
    found, cursor = [], None
    while True:
        page = store.inbox(cursor=cursor, **how)
        found.append(ids(page))
        cursor = page.next
        if cursor is None:
            return found


def until(condition):
    """What it gives, once another thread has got so far."""
    for _ in range(30_000):
        if found := condition():
            return found
        threading.Event().wait(0.001)
    raise AssertionError("it does not come")


def fail_once(run):
    """Leave a doubt in the run."""

    def charge(amount):
        raise TimeoutError("no reply")

    return run.once(charge, 42)


def test_an_inbox_in_which_nobody_asks_is_empty(store):
    store.save("r", {}, workflow="w")

    assert store.inbox() == keepstep.PageOf([], None)


def test_those_that_have_waited_longest_come_first(place):
    store = place.open()
    gates = []
    for name in ("m", "z", "a"):
        gates.append(ask(store, name))
        place.clock.turn(1)

    assert ids(store.inbox()) == gates
    assert [one.run_id for one in store.inbox().items] == ["m", "z", "a"]


def test_a_run_that_asks_again_has_waited_only_since_then(place):
    store = place.open()
    first = ask(store, "first")
    place.clock.turn(1)
    second = ask(store, "second")
    place.clock.turn(1)

    store.answer(first, 1)
    with store.run("first") as run:
        run.ask("Go on?")
        run.ask("And now?")

    assert ids(store.inbox())[0] == second
    assert [one.prompt for one in store.inbox().items] == ["Go on?", "And now?"]


def test_a_line_says_the_same_as_the_gate(store):
    gate = ask(store, "r", "How many?", fields={"n": int}, expires="1h", default={"n": 1})

    [line] = store.inbox().items
    assert line == store.gate(gate)
    assert (line.prompt, line.default, line.about, line.status) == ("How many?", {"n": 1}, "question", "open")
    assert quote(line.id, safe="") == line.id


def test_the_inbox_of_one_workflow(store):
    gates = {name: ask(store, name, workflow=name[0]) for name in ("a1", "b1", "a2")}

    assert sorted(ids(store.inbox("a"))) == sorted([gates["a1"], gates["a2"]])
    assert ids(store.inbox(workflow="b")) == [gates["b1"]]
    assert ids(store.inbox("none")) == []


@pytest.mark.parametrize("limit", [1, 2, 4, 5, 6])
def test_pages_hold_every_gate_once(place, limit):
    store = place.open()
    gates = []
    for number in range(5):
        gates.append(ask(store, f"r{number}"))
        place.clock.turn(number % 2)

    found = pages(store, limit=limit)

    assert [gate for page in found for gate in page] == gates
    assert all(len(page) <= limit for page in found)


def test_pages_are_not_disturbed_by_answers_and_new_questions(place):
    store = place.open()
    gates = []
    for number in range(4):
        gates.append(ask(store, f"r{number}"))
        place.clock.turn(1)
    page = store.inbox(limit=2)

    store.answer(gates[0], 1)
    store.answer(gates[3], 1)
    new = ask(store, "new")

    assert ids(store.inbox(limit=2, cursor=page.next)) == [gates[2], new]


@pytest.mark.parametrize("query", [{"limit": 0}, {"limit": "x"}, {"cursor": 5}, {"cursor": "x"}, {"cursor": ""},
                                   {"workflow": ""}, {"workflow": 5}], ids=repr)  # fmt: skip
def test_an_inbox_that_makes_no_sense_is_refused(store, query):
    ask(store, "r")

    with pytest.raises(keepstep.BadInput):
        store.inbox(**query)


def test_a_cursor_of_another_list_is_refused(store):
    for name in ("a", "b"):
        ask(store, name)
    runs, inbox = store.runs(limit=1).next, store.inbox(limit=1).next

    with pytest.raises(keepstep.BadInput):
        store.inbox(cursor=runs)
    with pytest.raises(keepstep.BadInput):
        store.runs(cursor=inbox)


def test_questions_and_doubts_stand_in_one_list(place):
    store = place.open()
    question = ask(store, "asks")
    place.clock.turn(1)
    with store.run("doubts", "w") as run:
        fail_once(run)
    [doubt] = store.look("doubts").gates

    lines = store.inbox().items
    assert [(one.id, one.about) for one in lines] == [(question, "question"), (doubt, "doubt")]
    assert lines[1].prompt == "Did fail_once.<locals>.charge(42) happen?"
    assert lines[1].details["error"]["message"] == "no reply"


def test_two_gates_of_one_run_are_two_lines(place):
    for prompt in ("First?", "Second?"):
        worker = place.open()
        with pytest.raises(keepstep.Pause):
            worker.claim("r", "w").ask(prompt, key=prompt)
        place.kill(worker)
        place.clock.turn(1)
    store = place.open()

    assert [one.prompt for one in store.inbox(limit=1).items] == ["First?", "Second?"]
    store.answer(store.inbox().items[0].id, 1)
    assert [one.prompt for one in store.inbox().items] == ["Second?"]


def test_a_run_that_waits_with_its_claim_stands_in_the_inbox(place):
    worker, person = place.open(lease=10_000_000.0), place.open()
    told = []

    def answer():
        [line] = until(lambda: person.inbox().items)
        told.append((line.run_id, person.look("r").status))
        person.answer(line.id, "yes")

    thread = threading.Thread(target=answer, daemon=True)
    with worker.run("r", "w") as run:
        thread.start()
        assert run.ask("Go on?", wait=True) == "yes"
        thread.join()
        assert person.inbox().items == []
        run.finish()

    assert told == [("r", "running")]


def test_what_is_answered_is_gone_for_every_store_and_every_later_one(place):
    one, two = place.open(), place.open()
    gate = ask(one, "r")
    assert ids(two.inbox()) == [gate]

    two.answer(gate, 1)

    assert (ids(one.inbox()), ids(two.inbox()), ids(place.open().inbox())) == ([], [], [])
    with one.run("r") as run:
        run.ask("Go on?")
        assert one.inbox().items == []
        run.finish()
    assert one.inbox().items == []


def test_what_has_expired_stands_there_until_somebody_records_it(place):
    store = place.open()
    gate = ask(store, "r", expires=60, default=0)
    place.clock.turn(60)
    assert ids(store.inbox()) == [gate]

    with pytest.raises(keepstep.GateExpired):
        store.answer(gate, 1)

    assert store.inbox().items == []


def test_runs_that_have_ended_ask_no_more(store):
    for name in ("failed", "deleted"):
        with suppress(ValueError), store.run(name, "w") as run:
            with suppress(keepstep.Pause):
                run.ask("Go on?")
            if name == "failed":
                raise ValueError
    store.delete("deleted")

    assert store.inbox().items == []


def test_a_run_of_the_same_id_begins_with_no_gates(store):
    ask(store, "r")
    store.delete("r")
    store.save("r", {}, workflow="w")

    assert store.inbox().items == []


@pytest.mark.parametrize("seed", range(4))
def test_whatever_is_asked_answered_and_deleted_the_inbox_holds_what_is_open(place, seed):
    chance = random.Random(seed)
    stores = [place.open(), place.open()]
    open_gates = {}
    for number in range(60):
        store = chance.choice(stores)
        deed = chance.choice(["ask", "ask", "answer", "delete", "fail"])
        run_id = f"r{chance.randrange(8)}"
        if deed == "ask" and run_id not in open_gates:
            open_gates[run_id] = ask(store, run_id, key=f"number {number}")
        elif deed == "answer" and run_id in open_gates:
            store.answer(open_gates.pop(run_id), number)
        elif deed == "delete":
            store.delete(run_id)
            open_gates.pop(run_id, None)
        elif deed == "fail" and run_id not in open_gates:
            with pytest.raises(ZeroDivisionError), store.run(run_id, "w"):
                raise ZeroDivisionError
        place.clock.turn(chance.choice([0, 1]))

        assert sorted(ids(chance.choice(stores).inbox())) == sorted(open_gates.values())
        lines = store.inbox().items
        assert [one.asked for one in lines] == sorted(one.asked for one in lines)

    for one in stores[0].runs().items:
        assert stores[0].verify(one.run_id).ok
