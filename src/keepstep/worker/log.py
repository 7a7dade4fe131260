"""What a worker says of itself, through standard logging: which run, step and epoch; nothing that is in a run.

The logger is `keepstep.worker`. Every message has `event` in its extra fields; what is about a run also has `run_id`,
`workflow`, `step` and `epoch`. Of errors only the class is told: their text, which may hold anything, is in the store.
"""

from __future__ import annotations

from typing import Any

from keepstep.engine.claims import Claim
from keepstep.flows.flow import Flow

ENDS = {
    "finished": "run finished",
    "failed": "run failed",
    "cancelled": "run cancelled",
    "paused": "run waits for an answer",
    "sleeping": "run sleeps",
    "ready": "run given back",
    "running": "run lost",
}


class Log:
    """One worker's remarks."""

    def __init__(self) -> None:
        from logging import getLogger  # nothing is imported before it is used

        self._logger = getLogger("keepstep.worker")
        self._said: set[tuple[Any, ...]] = set()
        self._steps: dict[str, str] = {}
        """At which step each run is that is being carried."""

    def began(self, workflows: list[str], concurrency: int) -> None:
        """The worker has begun."""
        told = {"event": "began", "workflows": workflows, "concurrency": concurrency}
        self._logger.info("worker carries %s, %d at once", ", ".join(workflows), concurrency, extra=told)

    def stops(self, left: int) -> None:
        """The worker claims nothing any more."""
        self._logger.info("worker stops, %d runs are under way", left, extra={"event": "stops", "left": left})

    def ended(self) -> None:
        """The worker has ended."""
        self._logger.info("worker has ended", extra={"event": "ended"})

    def claimed(self, claim: Claim) -> None:
        """A run was claimed."""
        self._of(claim, "debug", "run claimed", claim.row.next)

    def begins(self, claim: Claim, step: str) -> None:
        """A step begins."""
        self._steps[claim.run_id] = step
        self._of(claim, "debug", "step begins", step)

    def raised(self, claim: Claim, step: str, error: BaseException) -> None:
        """A step raised, and is tried again."""
        self._of(claim, "warning", "step raised and is tried again", step, error)

    def left(self, claim: Claim, error: BaseException | None) -> None:
        """A run was carried as far as it goes for now."""
        status = claim.row.status
        level = "warning" if status in ("failed", "running") or (error is not None and status == "ready") else "info"
        step = self._steps.pop(claim.run_id, claim.row.next)
        self._of(claim, level, ENDS.get(status, status), step, error)

    def given_up(self, claim: Claim) -> None:
        """A run has ended its worker too often."""
        self._of(claim, "error", f"run given up after {claim.row.deaths} deaths", claim.row.next)

    def trouble(self, error: BaseException, seconds: float) -> None:
        """The store cannot be reached."""
        told = {"event": "trouble", "error": type(error).__name__, "seconds": seconds}
        self._logger.warning("store trouble (%s), trying again in %.1f s", type(error).__name__, seconds, extra=told)

    def strange(self, workflow: str, version: str | None, here: list[str]) -> None:
        """Runs of a version that is not here are left alone; said once."""
        if self._is_new("strange", workflow, version):
            told = {"event": "strange", "workflow": workflow, "version": version, "here": here}
            text = "runs of %s, version %s, are left alone; here is version %s"
            self._logger.warning(text, workflow, version, ", ".join(here), extra=told)

    def compare(self, claim: Claim, flow: Flow) -> None:
        """The same version with other steps than the run knows; said once."""
        row = claim.row
        if row.flow_version != flow.version or row.flow_fingerprint in (None, flow.fingerprint):
            return
        if self._is_new("changed", flow.name, flow.version, row.flow_fingerprint):
            told = {"event": "changed", "workflow": flow.name, "version": flow.version, "run_id": claim.run_id}
            text = "%s has other steps than when its runs of version %s began; give it another version"
            self._logger.warning(text, flow.name, flow.version, extra=told)

    def _is_new(self, *what: Any) -> bool:
        is_new = what not in self._said
        self._said.add(what)
        return is_new

    def _of(self, claim: Claim, level: str, event: str, step: str | None, error: BaseException | None = None) -> None:
        told = {
            "event": event,
            "run_id": claim.run_id,
            "workflow": claim.row.workflow,
            "step": step,
            "epoch": claim.writer.epoch,
            "error": None if error is None else type(error).__name__,
        }
        text = "%s: %s of %s, step %s, epoch %d" + ("" if error is None else f" ({type(error).__name__})")
        say = getattr(self._logger, level)
        say(text, event, claim.run_id, claim.row.workflow, step, claim.writer.epoch, extra=told)
