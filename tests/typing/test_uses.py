"""The typed uses are true when they run, and none of the public face is left out of them."""

from __future__ import annotations

import ast
import asyncio
import inspect
from datetime import UTC, datetime
from pathlib import Path

import pytest

import keepstep
from keepstep.runtime.clock import SystemClock
from keepstep.store.memory import MemoryStore
from keepstep.testing import FaultyStore
from tests.typing import uses

TREE = ast.parse(Path(uses.__file__).read_text("utf-8"))


def attributes_of(names):
    """What is taken from a variable of one of these names, anywhere in the uses, awaited or not."""
    taken = [node for node in ast.walk(TREE) if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)]
    return {node.attr for node in taken if isinstance(node.value, ast.Name) and node.value.id in names}


def within(kind):
    """The functions of the uses that are plain, or that are async."""
    return ast.Module([node for node in TREE.body if isinstance(node, kind)], [])


def called_in(kind, variable):
    nodes = [node for node in ast.walk(within(kind)) if isinstance(node, ast.Attribute)]
    return {node.attr for node in nodes if isinstance(node.value, ast.Name) and node.value.id == variable}


def public(cls):
    return {name for name in dir(cls) if not name.startswith("_")}


def test_every_name_of_the_sync_handles_is_used():
    assert called_in(ast.FunctionDef, "store") >= public(keepstep.Store)
    assert called_in(ast.FunctionDef, "run") | {"close"} >= public(keepstep.Run)
    assert "close" in called_in(ast.FunctionDef, "claimed")


def test_every_name_of_the_async_handles_is_used():
    plain = called_in(ast.FunctionDef, "run")

    assert called_in(ast.AsyncFunctionDef, "store") >= public(keepstep.AsyncStore)
    assert called_in(ast.AsyncFunctionDef, "run") | plain | {"close"} >= public(keepstep.AsyncRun)
    assert {"save", "note", "tag", "finish"} <= called_in(ast.AsyncFunctionDef, "run")
    assert "close" in called_in(ast.AsyncFunctionDef, "claimed")


def test_every_public_function_and_result_is_used():
    used = attributes_of({"keepstep"})
    kinds = {
        name
        for name in keepstep.__all__
        if not (inspect.isclass(one := getattr(keepstep, name)) and issubclass(one, BaseException))
    }

    assert used >= kinds


def test_the_uses_of_a_sync_store_are_true(folder):
    uses.opens(folder)
    with keepstep.open(folder / "uses.db") as store:
        uses.works(store)
        uses.reads(store)
        uses.calls(store)
        uses.waits(store)
        uses.carries(store)
        uses.goes_back(store)
        store.save("look", {}, workflow="w")
        outcome = store.carry(lambda run: 1, "carry", "w")
        uses.results(store.look("look"), store.at("look"), outcome)
        uses.weights(store.verify("look"), store.size("look"), keepstep.Change("a", "added"))
        uses.acts(store, folder / "copy.db")
    assert (folder / "copy.db").exists()
    assert (folder / "copy.db-2").exists()


def test_the_uses_of_an_async_store_are_true(folder):
    async def every():
        await uses.opens_async(folder)
        async with keepstep.open_async(folder / "uses.db") as store:
            await uses.works_async(store)
            await uses.reads_async(store)
            await uses.calls_async(store)
            await uses.waits_async(store)
            await uses.carries_async(store)
            await uses.goes_back_async(store)
            await uses.acts_async(store, folder / "copy.db")

    asyncio.run(every())

    assert (folder / "copy.db").exists()


def test_the_uses_of_registries_and_tests_are_true(folder):
    uses.registers()
    uses.tests(folder, FaultyStore(MemoryStore(SystemClock())))


@pytest.mark.parametrize(
    "error",
    [
        keepstep.RunFinished("r", 1),
        keepstep.RunHeld("r", "ann", datetime.now(UTC)),
        keepstep.RunWaiting("r", ["gate"]),
        keepstep.NoSuchRun("r", ["s"]),
        keepstep.RunGone("r"),
        keepstep.StoreFull("full"),
        keepstep.RollbackRefused("r", 1, [("key", "pay", "nothing undoes it")]),
        keepstep.Rejected("r", "key", "pay()", "ann", None),
        keepstep.EffectInDoubt("r", "key", "pay()"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_the_uses_of_errors_are_true(error):
    uses.errors(error)
