"""The handle of a claimed run, sync."""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, Literal, ParamSpec, Self, TypeVar

from keepstep.api.held import Held
from keepstep.api.leaving import leave
from keepstep.api.using import Using, said
from keepstep.engine import claims, marks, saves
from keepstep.engine.fields import form
from keepstep.engine.gates import NO_DEFAULT, Question, ask
from keepstep.engine.gathering import gather
from keepstep.engine.mail import receive, sleep_until
from keepstep.engine.moments import at_us
from keepstep.log.records import TagValue
from keepstep.runtime.durations import Duration, seconds
from keepstep.runtime.inline import drive

P = ParamSpec("P")
T = TypeVar("T")


class Run(Held):
    """A run that this process holds: nobody else can write it until the block ends or `close` is called."""

    def save(self, state: Any, next: str | None = None, *, step: int | None = None, label: str | None = None) -> int:
        """Save a checkpoint; it is durable when this returns. Returns its step.

        Steps count up from 1; `step=` gives the number instead (it must grow; gaps are fine). `next` names what is to
        be done next, `label` makes the checkpoint easy to find again.
        """
        claim = self._claimed("save")
        return self._wait(
            saves.save(
                claim, self._shape, self._tape, state, next=claim.step if next is None else next, step=step, label=label
            )
        )

    def finish(self, result: Any = None) -> None:
        """End the run with a result; durable when this returns."""
        self._wait(claims.finish(self._claimed("finish"), result))

    def note(self, value: Any) -> None:
        """Remark on the progress; `look(...).note` shows the last remark."""
        self._wait(marks.note(self._claimed("note"), value))

    def tag(self, tags: Mapping[str, TagValue | None] | None = None, /, **more: TagValue | None) -> None:
        """Set searchable marks on the run; None takes one away."""
        self._wait(marks.tag(self._claimed("tag"), marks.together(tags, more)))

    def memo(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function that is safe to repeat (a model, a search). Whoever resumes the run gets its recorded result.

        It is found again by the step, the function and the arguments. Its errors are not recorded.
        """
        return self.using().memo(function, *args, **kwargs)

    def once(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function that must not repeat (a payment, a mail). It never starts twice without consent.

        That it begins is durable before the call, its outcome after it. If the process dies in between, or the call
        raises, nobody knows whether it happened, and it is not started again: see `EffectInDoubt`. Raise `NotDone` in
        it to say that it did not happen. Without a key it is found again by the step and the order of its calls.
        """
        return self.using().once(function, *args, **kwargs)

    def ask(
        self,
        prompt: str,
        fields: Any = None,
        *,
        expires: Duration | None = None,
        default: Any = NO_DEFAULT,
        key: str | None = None,
        wait: bool = False,
    ) -> Any:
        """Ask a person. The run pauses here until somebody answers; who resumes it gets the answer.

        `fields` are the types of the answer by name (bool, int, float, str, Literal, Enum, date, lists, `| None`), or a
        class. `expires` is a deadline; after it the `default` is the answer, or `GateExpired` is raised. With
        `wait=True` the claim is kept, and this call waits.
        """
        claim = self._claimed("ask")
        seconds_left = None if expires is None else seconds(expires, "expires")
        return self._wait(ask(claim, Question(prompt, form(fields), seconds_left, default, key, waits=wait)))

    def confirm(
        self, prompt: str, *, expires: Duration | None = None, default: Any = NO_DEFAULT, key: str | None = None
    ) -> bool:
        """Ask a person for yes or no: see `ask`."""
        return self.ask(prompt, bool, expires=expires, default=default, key=key)

    def sleep(self, duration: Duration) -> None:
        """Go on after so long. The block ends here, and the run is due at that time, in whatever process."""
        claim = self._claimed("sleep")
        self._wait(sleep_until(claim, None, seconds(duration, "duration")))

    def sleep_until(self, moment: datetime) -> None:
        """Go on at a time: see `sleep`."""
        self._wait(sleep_until(self._claimed("sleep_until"), at_us(moment), None))

    def receive(self, name: str, *, timeout: Duration | None = None) -> Any:
        """The next message that `store.send` left under this name; until one comes, the block ends and the run sleeps.

        Each message is received once, in the order of sending. After the timeout, `TimedOut` is raised.
        """
        claim = self._claimed("receive")
        return self._wait(receive(claim, name, None if timeout is None else seconds(timeout, "timeout")))

    def gather(self, *calls: Callable[[], Any]) -> list[Any]:
        """Make calls at once, each in a thread: `run.gather(lambda: run.memo(search, "x"), lambda: ...)`.

        All of them come to their end; then their results are returned, or what one of them raised is raised.
        """
        return self._wait(gather(self._claimed("gather"), calls))

    def using(
        self,
        *,
        key: str | None = None,
        target: str | None = None,
        undo: Callable[..., Any] | None = None,
        idempotent: bool | None = None,
        reconcile: Callable[..., Any] | None = None,
        not_done: Sequence[type[BaseException]] | None = None,
        unsure: Literal["ask", "raise"] | None = None,
        min_lease: float | None = None,
        approve: str | None = None,
        expires: Duration | None = None,
        default: bool | None = None,
        rejected: Literal["raise", "value"] | None = None,
    ) -> Using:
        """Say more about one call: `run.using(key=call.id).once(pay, "ada", amount=420)`.

        `key` names it in this run (a tool call's id). `target` says what it acts upon. The others are as at
        `keepstep.tool`, and are stronger than what was said there.

        `approve` is a question to a person, who sees the call's final arguments and may change them; without a yes the
        call is not made, and raises `Rejected` (or returns it: `rejected="value"`). `expires` and `default` say how
        long the question stands, and what holds after that.
        """
        return Using(
            self._claimed,
            said(
                key=key,
                target=target,
                undo=undo,
                idempotent=idempotent,
                reconcile=reconcile,
                not_done=not_done,
                unsure=unsure,
                min_lease=min_lease,
                approve=approve,
                expires_seconds=None if expires is None else seconds(expires, "expires"),
                default=default,
                rejected=rejected,
            ),
            self._wait,
        )

    def _wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Have a coroutine of the engine carried out."""
        return drive(coroutine)

    def close(self) -> None:
        """Release the run, ready for whoever comes next. Twice is fine."""
        drive(leave(self._inherited("close"), None, ()))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        if os.getpid() == self._pid:  # a child that leaves the block by a fork leaves the run to its parent
            drive(leave(self._claim, error, self._interrupts))
        return self._is_own(error)
