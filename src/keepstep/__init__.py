"""Durable checkpoints for agent workflows: a run survives whatever happens to the process that runs it."""

from keepstep.api.async_run import AsyncRun
from keepstep.api.async_store import AsyncStore
from keepstep.api.opening import open, open_async  # noqa: A004 - keepstep.open reads as it should
from keepstep.api.run import Run
from keepstep.api.store import Store
from keepstep.codec.difference import Change
from keepstep.codec.registry import DEFAULT as _DEFAULT
from keepstep.codec.registry import Registry, Unknown
from keepstep.engine.checkpoints import LargeStateWarning
from keepstep.engine.context import Limits
from keepstep.engine.forks import REMOVE
from keepstep.engine.looks import (
    Checkpoint,
    CheckpointHead,
    HolderLook,
    Look,
    Outcome,
    PageOf,
    ParentLook,
    RunHead,
    Size,
    Verification,
)  # fmt: skip
from keepstep.errors import (
    BadInput,
    CannotOpen,
    CannotStore,
    ClaimLost,
    Damaged,
    KeepstepError,
    NewerFormat,
    NoSuchCheckpoint,
    NoSuchRun,
    NotAllowed,
    NotAStore,
    NothingToDo,
    ReadOnly,
    RunCancelled,
    RunError,
    RunExists,
    RunFinished,
    RunGone,
    RunHeld,
    RunWaiting,
    StateMismatch,
    Stop,
    StoreBusy,
    StoreError,
    StoreFailed,
    StoreFull,
    TooLarge,
    WrongUse,
    WrongWorkflow,
)  # fmt: skip
from keepstep.log.chain import Damage

register = _DEFAULT.register

__version__ = "0.1.0"

__all__ = [
    "REMOVE",
    "AsyncRun",
    "AsyncStore",
    "BadInput",
    "CannotOpen",
    "CannotStore",
    "Change",
    "Checkpoint",
    "CheckpointHead",
    "ClaimLost",
    "Damage",
    "Damaged",
    "HolderLook",
    "KeepstepError",
    "LargeStateWarning",
    "Limits",
    "Look",
    "NewerFormat",
    "NoSuchCheckpoint",
    "NoSuchRun",
    "NotAStore",
    "NotAllowed",
    "NothingToDo",
    "Outcome",
    "PageOf",
    "ParentLook",
    "ReadOnly",
    "Registry",
    "Run",
    "RunCancelled",
    "RunError",
    "RunExists",
    "RunFinished",
    "RunGone",
    "RunHead",
    "RunHeld",
    "RunWaiting",
    "Size",
    "StateMismatch",
    "Stop",
    "Store",
    "StoreBusy",
    "StoreError",
    "StoreFailed",
    "StoreFull",
    "TooLarge",
    "Unknown",
    "Verification",
    "WrongUse",
    "WrongWorkflow",
    "open",
    "open_async",
    "register",
]
