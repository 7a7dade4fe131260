"""Ids are different in every thread and in every process."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor

import pytest

from keepstep.runtime.ids import SystemIds
from tests.children import in_children

KINDS = ["batch", "effect", "owner", "short"]
MANY = {"batch": 2000, "effect": 2000, "owner": 2000, "short": 20}
"""A short id has 32 bits: of so few, no two meet by chance."""


def some(kind, count=None):
    ids = SystemIds()
    return [getattr(ids, kind)() for _ in range(count or MANY[kind])]


@pytest.mark.parametrize("kind", KINDS)
def test_no_two_threads_make_the_same(kind):
    with ThreadPoolExecutor(4) as threads:
        made = [one for found in threads.map(some, [kind] * 4) for one in found]

    assert len(set(made)) == len(made) == 4 * MANY[kind]


@pytest.mark.parametrize("kind", KINDS)
def test_no_two_forked_processes_make_the_same(kind):
    some(kind)  # a generator seeded before the fork would go on alike in each child
    made = [one for found in in_children([lambda: some(kind)] * 4) for one in found] + some(kind)

    assert len(set(made)) == len(made)


@pytest.mark.parametrize("kind", KINDS)
def test_they_do_not_follow_from_a_seed_of_the_user(kind):
    random.seed(1)
    one = some(kind, 3)
    random.seed(1)

    assert some(kind, 3) != one


def test_they_are_as_long_as_the_format_says():
    ids = SystemIds()

    assert len(ids.batch()) == 8
    assert len(bytes.fromhex(ids.effect())) == 12
    assert len(bytes.fromhex(ids.owner())) == 12
    assert len(bytes.fromhex(ids.short())) == 4
