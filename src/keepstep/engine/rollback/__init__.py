"""Going back: the run continues from an earlier checkpoint, on a new line, its effects since then undone.

    plan ──► reopened, claimed ──► undo_began ──► undone        newest first
                                       └────────► undo_failed   the rollback stops here, and can be called again
         ──► rolled_back ──► released

Each undo is in the ledger itself, so that a rollback that was cut off goes on where it stopped, and nothing is undone
twice. While one is under way, the run cannot be entered otherwise. An undo that was cut off is in doubt like any
effect: it is made again if it says that it may be, or can be asked, or somebody says that it was not made.
"""

from keepstep.engine.rollback.going import RETRIES_MAX, plan, rollback

__all__ = ["RETRIES_MAX", "plan", "rollback"]
