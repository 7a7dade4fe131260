"""A trip that is booked, taken back, and booked another way.

The agent books a flight and a hotel, and writes to Ada. Then Ada changes her mind. The run goes back to the step at
which she had named a city: the hotel and the flight are undone, newest first; the mail cannot be, and is kept. The
airline's system is down at first, so the rollback stops half-way and is called again: what was undone stays undone.
Then the run continues from there, on a new line, with another city.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import keepstep


class Office:
    """Stands for the systems outside: it knows what is booked, and is not always there."""

    def __init__(self) -> None:
        self.booked: dict[str, str] = {}
        self.is_down = True

    def book(self, what: str, reference: str) -> str:
        """Book something; the reference makes a repeated call harmless."""
        self.booked.setdefault(reference, what)
        return reference

    def cancel(self, reference: str) -> None:
        """Take it back; the airline is not there at first."""
        if self.booked[reference].startswith("flight") and self.is_down:
            self.is_down = False
            raise keepstep.NotDone("the airline's system is down")
        print(f"  takes back the {self.booked.pop(reference)}")


OFFICE = Office()


# --- the tools -------------------------------------------------------------------------------------------------------


def take_back(done: keepstep.Done) -> None:
    """What undoes a booking: it is told what the booking returned."""
    OFFICE.cancel(done.result)


@keepstep.tool(undo=take_back)
def book(what: str, city: str) -> str:
    """Book something in a city."""
    print(f"  books a {what} to {city}")
    return OFFICE.book(f"{what} to {city}", keepstep.effect().idempotency_key)


def write(city: str) -> str:
    """Write to Ada; a mail cannot be taken back."""
    print(f"  writes to Ada about {city}")
    return "sent"


# --- the agent -------------------------------------------------------------------------------------------------------


def agent(run: keepstep.Run, city: str) -> str:
    """Name a city, if none is named yet; then book, and write."""
    state = run.state or {"city": city, "booked": False}
    if run.step is None:
        run.save(state, next="book")
    if not state["booked"]:
        for what in ("flight", "hotel"):
            run.using(key=what).once(book, what, city)
        run.using(key=f"mail about {city}").once(write, city)
        run.save({"city": city, "booked": True})
    return f"to {city}"


def go_back(store: keepstep.Store) -> None:
    """Look at the plan, keep what cannot be undone, and go back."""
    plan = store.plan_rollback("trip-1", to=1)
    for item in plan.items:
        print(f"  {item.key}: {item.action}")
    keep = [item.key for item in plan.items if item.action == "cannot"]
    try:
        store.rollback("trip-1", to=1, keep=keep)
    except keepstep.UndoFailed as error:
        print(f"  stops at the {error.key}: {error.__cause__}")
        print("  is called again")
        store.rollback("trip-1", to=1, keep=keep)


def main() -> None:
    """Book, go back, and book another way."""
    with tempfile.TemporaryDirectory() as folder, keepstep.open(Path(folder) / "runs.db") as store:
        print("the agent")
        print(f"  {store.carry(lambda run: agent(run, 'Rome'), 'trip-1', workflow='trip').result}")

        print("going back to step 1")
        go_back(store)
        look = store.look("trip-1")
        print(f"  {look.status} at step {look.step}, line {look.line}: {look.state}")

        print("the agent")
        print(f"  {store.carry(lambda run: agent(run, 'Paris'), 'trip-1').result}")

        print(f"booked: {', '.join(OFFICE.booked.values())}")
        for effect in store.effects("trip-1"):
            print(f"the ledger: {effect.key}, attempt {effect.attempt}, line {effect.line}, {effect.status}")
        print("the log still has", [f"line {line.line} step {line.step}" for line in store.history("trip-1").items])


if __name__ == "__main__":
    main()
