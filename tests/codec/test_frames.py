import random
from contextlib import suppress
from itertools import pairwise

import pytest
from codec_classes import REGISTRY, Message
from hypothesis import given, settings
from hypothesis import strategies as st

from keepstep.codec.envelope import pack, unpack
from keepstep.codec.framer import DELTA, KEY, SEGMENT, Framer
from keepstep.codec.frames import change_frame, key_frame, rebuild
from keepstep.codec.parts import join, split
from keepstep.errors import Damaged, KeepstepError, NewerFormat

STATES = st.lists(
    st.dictionaries(st.sampled_from("abcdef"), st.integers() | st.lists(st.text(), max_size=30), max_size=6),
    min_size=1,
    max_size=6,
)


@settings(max_examples=100, deadline=None)
@given(STATES)
def test_any_row_of_states_is_rebuilt_with_its_order(states):
    parts = [split(state, REGISTRY) for state in states]
    frames = [key_frame(parts[0]), *(change_frame(old, new) or key_frame(new) for old, new in pairwise(parts))]
    for length in range(1, len(frames) + 1):
        got = rebuild(frames[:length])
        assert got == parts[length - 1]
        assert list(got.items) == list(parts[length - 1].items)


def test_a_state_of_another_kind_is_stored_whole():
    parts = [split(state, REGISTRY) for state in ({"a": 1}, [1], Message("a"), {"a": 2})]
    frames = [key_frame(parts[0]), *(change_frame(old, new) or key_frame(new) for old, new in pairwise(parts))]
    assert [rebuild(frames[: n + 1]) for n in range(4)] == parts


def test_frames_out_of_place_are_damage():
    old, new = split({"a": 1, "b": 2}, REGISTRY), split({"a": 1, "c": 2}, REGISTRY)
    change = change_frame(old, new)
    assert change is not None
    for frames in ([], [change], [key_frame(new), change]):
        with pytest.raises(Damaged):
            rebuild(frames)


class Writer:
    """A writer of frames, as the engine is one."""

    def __init__(self, framer=None, latest=None):
        self.framer, self.latest = framer or Framer.fresh(), latest
        self.plans, self.bodies = {}, {}

    def save(self, state, seq):
        self.latest = split(state, REGISTRY, self.latest)
        plan = self.framer.next(self.latest)
        body = pack(plan.content)
        self.framer.accept(plan, seq, len(body))
        self.plans[seq], self.bodies[seq] = (plan.kind, plan.bases), body
        return plan

    def chain(self, seq):
        """Seqs of all the frames a reader needs, oldest first."""
        found = [seq]
        while self.plans[found[-1]][0] != KEY:
            kind, bases = self.plans[found[-1]]
            found += bases
            if kind == SEGMENT:
                break
        return found[::-1]

    def read(self, seq):
        return rebuild([unpack(self.bodies[one]) for one in self.chain(seq)])


def states(count, seed=1):
    dice = random.Random(seed)
    state = {"messages": [], "step": 0, "notes": {}}
    for step in range(count):
        state["step"] = step
        choice = dice.random()
        if choice < 0.7 or not state["messages"]:
            state["messages"].append({"role": "user", "text": dice.randbytes(40).hex()})
        elif choice < 0.8:
            state["messages"][dice.randrange(len(state["messages"]))] = "replaced"
        elif choice < 0.85:
            del state["messages"][dice.randrange(len(state["messages"]))]
        else:
            state["notes"][dice.choice("abcd")] = dice.random()
        yield state


def test_every_step_is_read_back_from_at_most_eighty_rows():
    writer = Writer()
    for seq, state in enumerate(states(700), 1):
        writer.save(state, seq * 3)
        assert len(writer.chain(seq * 3)) <= 80
        if seq % 7 == 0:
            assert join(writer.read(seq * 3), REGISTRY) == state


def test_ten_thousand_steps_never_need_more_than_eighty_rows():
    writer = Writer()
    state = {"big": "x" * 100_000, "step": 0}
    most = 0
    for seq in range(1, 10_001):
        state["step"] = seq
        writer.save(state, seq)
        most = max(most, len(writer.chain(seq)))
    assert most == 80
    assert join(writer.read(10_000), REGISTRY) == state


def test_a_resumed_framer_goes_on_as_one_that_never_stopped():
    whole = Writer()
    plans = [whole.save(state, seq) for seq, state in enumerate(states(400), 1)]
    for stop in (1, 2, 31, 32, 33, 34, 100, 333):
        chain = whole.chain(stop)
        kinds = {seq: whole.plans[seq][0] for seq in chain}
        deltas = [seq for seq in chain if kinds[seq] == DELTA]
        segments = [seq for seq in chain if kinds[seq] != DELTA]
        weight = sum(len(whole.bodies[seq]) for seq in range(segments[0] + 1, stop + 1))
        latest, segment = whole.read(stop), whole.read(segments[-1])
        framer = Framer.restore(latest, segment, deltas, segments, weight, len(whole.bodies[segments[0]]))
        again = Writer(framer, latest)
        for seq, state in enumerate(states(400), 1):
            if seq > stop:
                plan = again.save(state, seq)
                assert (plan.kind, plan.bases, plan.content) == (
                    plans[seq - 1].kind,
                    plans[seq - 1].bases,
                    plans[seq - 1].content,
                )


def test_next_does_not_advance():
    framer = Framer.fresh()
    parts = split({"a": 1}, REGISTRY)
    assert framer.next(parts).kind == framer.next(parts).kind == KEY
    assert framer.weight == 0


def test_a_key_comes_when_the_changes_outweigh_the_state():
    writer = Writer()
    dice = random.Random(3)
    state = {f"k{n}": dice.randbytes(2000) for n in range(10)}
    kinds = []
    for seq in range(1, 200):
        state[f"k{dice.randrange(10)}"] = dice.randbytes(2000)
        kinds.append(writer.save(state, seq).kind)
    assert 1 < kinds.count(KEY) < 20


def test_a_flipped_byte_gives_nothing_but_damage_or_a_newer_format():
    writer = Writer()
    for seq, state in enumerate(states(40), 1):
        writer.save(state, seq)
    chain = [writer.bodies[seq] for seq in writer.chain(40)]
    for place in range(len(chain)):
        for index in range(len(chain[place])):
            bodies = list(chain)
            body = bytearray(bodies[place])
            body[index] ^= 0xFF if index % 2 else 1
            bodies[place] = bytes(body)
            with suppress(Damaged, NewerFormat):
                rebuild([unpack(one, limit=1 << 20) for one in bodies])


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=40))
def test_any_bytes_as_a_frame_give_an_error_of_ours(data):
    for frames in ([data], [key_frame(split({"a": 1}, REGISTRY)), data]):
        with suppress(KeepstepError):
            join(rebuild(frames), REGISTRY)
