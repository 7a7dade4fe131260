"""A state that is an instance of the user's class, and what happens when the class changes."""

from dataclasses import dataclass, field

import attrs
import msgspec
import pydantic
import pytest

import keepstep


@dataclass
class Line:
    text: str
    cost: int = 0


@dataclass
class DataReport:
    lines: list[Line] = field(default_factory=list)
    total: int = 0


class StructReport(msgspec.Struct):
    lines: list[Line] = []
    total: int = 0


@attrs.define
class AttrsReport:
    lines: list[Line] = attrs.Factory(list)
    total: int = 0


class ModelReport(pydantic.BaseModel):
    lines: list[Line] = []
    total: int = 0


CLASSES = (DataReport, StructReport, AttrsReport, ModelReport)
EVERY_CLASS = pytest.mark.parametrize("cls", CLASSES)


@dataclass
class Report2:
    """What a report looks like in version 2: amounts in cents, and a currency."""

    cents: int
    currency: str


@dataclass
class Report3:
    """And in version 3."""

    cents: int
    country: str


def to_2(fields):
    return {"cents": fields["total"] * 100, "currency": "EUR"}


def to_3(fields):
    return {"cents": fields["cents"], "country": {"EUR": "DE"}[fields["currency"]]}


@EVERY_CLASS
def test_a_typed_state_comes_back_as_it_was(store, cls):
    state = cls(lines=[Line("tea", 3)], total=3)
    with store.run("r", "w", state=cls) as run:
        assert run.state is None
        run.save(state)
        state.lines.append(Line("cake", 4))
        state.total = 7
        run.save(state)

    with store.run("r", state=cls) as run:
        assert run.state == state
        assert type(run.state.lines[1]) is Line
    assert store.load("r", state=cls).state == state
    assert store.look("r", state=cls).state == state
    assert store.at("r", step=1, state=cls).state == cls(lines=[Line("tea", 3)], total=3)
    assert store.fork("r", id="r-b", state=cls).state == state
    assert {run.id: run.state for run in store.claim_due(limit=2, state=cls)} == {"r": state, "r-b": state}


@EVERY_CLASS
def test_a_dict_that_was_saved_fits_the_type(store, cls):
    store.save("r", {"lines": [], "total": 5}, workflow="w")

    assert store.load("r", state=cls).state == cls(lines=[], total=5)


@EVERY_CLASS
def test_without_the_class_the_state_can_still_be_read(store, cls):
    with store.run("r", "w", state=cls) as run:
        run.save(cls(lines=[Line("tea")], total=3))

    state = store.load("r").state
    assert isinstance(state, keepstep.Unknown)
    assert state.tag.endswith(cls.__name__)
    assert state.value["total"] == 3
    assert store.size("r").by_key.keys() == {"lines", "total"}


def test_a_registered_class_needs_no_mention(place):
    registry = keepstep.Registry()
    registry.register(DataReport)
    registry.register(Line)
    store = place.open(registry=registry)

    store.save("r", DataReport([Line("tea")], 3), workflow="w")

    assert store.load("r").state == DataReport([Line("tea")], 3)
    assert isinstance(place.open().load("r").state, keepstep.Unknown)


def test_a_class_that_nobody_registered_is_refused_before_anything_is_written(store):
    with pytest.raises(keepstep.CannotStore, match=r"register it or leave it out"):
        store.save("r", {"report": DataReport()}, workflow="w")

    assert store.load("r") is None


def test_a_state_of_another_type_is_refused(store):
    with store.run("r", "w", state=DataReport) as run:
        with pytest.raises(keepstep.BadInput, match=r"dict.*DataReport"):
            run.save({"total": 1})
        run.save(DataReport(total=1))

    assert store.load("r", state=DataReport).state.total == 1


def test_a_class_may_be_renamed(store):
    with store.run("r", "w", state=DataReport) as run:
        run.save(DataReport(total=3))

    assert store.load("r", state=ModelReport).state == ModelReport(total=3)


def test_a_new_field_with_a_default_needs_no_version(store):
    store.save("r", {"total": 3}, workflow="w")

    assert store.load("r", state=DataReport).state == DataReport([], 3)


def test_a_field_that_the_class_no_longer_has_is_left_out(store):
    store.save("r", {"total": 3, "lines": [], "gone": 1}, workflow="w")

    assert store.load("r", state=DataReport).state == DataReport([], 3)


@pytest.mark.parametrize("saved", [{"cents": 1}, [1], "text", None])
def test_a_state_that_does_not_fit_is_told_and_not_held(store, saved):
    store.save("r", saved, workflow="w")

    for read in (store.load, store.look, store.at, store.claim):
        with pytest.raises(keepstep.StateMismatch, match=r"'r'.*Report2"):
            read("r", state=Report2)

    assert store.look("r").status == "ready"


# --- versions --------------------------------------------------------------------------------------------------------


@pytest.fixture
def old(store):
    """A run with a state of version 1."""
    with store.run("r", "w", state=DataReport) as run:
        run.save(DataReport(total=3))
    return store


def test_an_older_state_is_lifted(old):
    with old.run("r", state=Report2, version=2, lift={1: to_2}) as run:
        assert run.state == Report2(300, "EUR")
        run.save(Report2(400, "EUR"))

    assert old.load("r", state=Report2, version=2).state == Report2(400, "EUR")
    assert old.load("r").version == 2
    assert old.at("r", step=1, state=Report2, version=2, lift={1: to_2}).state == Report2(300, "EUR")
    assert old.at("r", step=1).version == 1


def test_lifts_are_chained(old):
    found = old.load("r", state=Report3, version=3, lift={1: to_2, 2: to_3})

    assert found.state == Report3(300, "DE")


def test_a_state_without_a_type_is_lifted_too(store):
    store.save("r", {"total": 3}, workflow="w")

    assert store.load("r", version=2, lift={1: to_2}).state == {"cents": 300, "currency": "EUR"}


def test_reading_does_not_write_the_lifted_state(old):
    before = old.look("r").digest

    old.load("r", state=Report2, version=2, lift={1: to_2})

    assert old.look("r").digest == before


@pytest.mark.parametrize("lift", [None, {}, {2: to_3}])
def test_a_missing_lift_is_named_and_the_run_not_held(old, lift):
    for read in (old.load, old.claim):
        with pytest.raises(keepstep.StateMismatch, match=r"'r'.*version 1.*lift"):
            read("r", state=Report3, version=3, lift=lift)

    assert old.look("r").status == "ready"


def test_a_state_of_a_newer_version_is_refused(store):
    with store.run("r", "w", state=Report2, version=2) as run:
        run.save(Report2(1, "EUR"))

    for read in (store.load, store.claim):
        with pytest.raises(keepstep.StateMismatch, match=r"version 2.*deploy newer code"):
            read("r", state=DataReport)

    assert store.look("r").status == "ready"


def test_a_lift_that_fails_leaves_the_run_free(old):
    def fails(fields):
        raise LookupError(fields["total"])

    with pytest.raises(LookupError):
        old.claim("r", state=Report2, version=2, lift={1: fails})

    assert old.look("r").status == "ready"


def test_a_fork_without_edits_keeps_the_version(store):
    with store.run("r", "w", state=Report2, version=2) as run:
        run.save(Report2(1, "EUR"))

    store.fork("r", id="r-b", state=Report2, version=2)

    assert store.load("r-b").version == 2


def test_a_fork_with_edits_is_of_the_version_it_was_edited_in(old):
    look = old.fork("r", edits={"currency": "USD"}, id="r-b", state=Report2, version=2, lift={1: to_2})

    assert look.state == Report2(300, "USD")
    assert old.load("r-b").version == 2


@pytest.mark.parametrize(
    "shape",
    [
        {"version": 0},
        {"version": -1},
        {"version": "1"},
        {"version": True},
        {"version": 1.0},
        {"state": 5},
        {"state": int},
        {"state": list[int]},
        {"state": "DataReport"},
        {"version": 2, "lift": 5},
        {"version": 2, "lift": [to_2]},
        {"version": 2, "lift": {1: "to_2"}},
        {"version": 2, "lift": {"1": to_2}},
    ],
    ids=str,
)
def test_a_shape_that_makes_no_sense_is_refused(memory_store, shape):
    memory_store.save("r", {"total": 1}, workflow="w")

    for read in (memory_store.load, memory_store.claim, memory_store.look):
        with pytest.raises(keepstep.BadInput):
            read("r", **shape)

    assert memory_store.look("r").status == "ready"
