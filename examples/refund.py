"""A refund that is asked for first, and paid once, though its provider does not answer.

The agent asks a person, and rests until the answer comes. Then it pays. The provider books the payment, and its answer
is lost on the way back: nobody here knows whether the money went. So the run asks again, a person looks into the
provider's books, and the run goes on with what that person says. It never pays twice.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

import keepstep

QUESTION = "How much shall we refund to Ada for order A-17?"
FIELDS = {"amount": Annotated[int, Meta(ge=0, le=420)], "reason": str}


# --- the provider ----------------------------------------------------------------------------------------------------


class Provider:
    """Books every payment, and does not always say so."""

    def __init__(self) -> None:
        self.books: dict[str, int] = {}
        self.silent = True

    def pay(self, amount: int, reference: str) -> str:
        """Pay; the first time, the answer is lost."""
        self.books[reference] = amount
        if self.silent:
            self.silent = False
            raise TimeoutError("no answer within 30 s")
        return f"payment {len(self.books)}"


# --- the agent -------------------------------------------------------------------------------------------------------


def look_up(order: str) -> dict[str, Any]:
    """Stands for a query."""
    print(f"  looks up order {order}")
    return {"customer": "ada", "paid": 420}


def agent(run: keepstep.Run, provider: Provider) -> str:
    """The whole of it, from its beginning; what was done before is found in the ledger."""

    @keepstep.tool(name="refund")
    def refund(customer: str, amount: int) -> str:
        print(f"  pays {amount} to {customer}")
        return provider.pay(amount, reference=keepstep.effect().idempotency_key)

    case = run.memo(look_up, "A-17")
    answer = run.ask(QUESTION, FIELDS, expires="3d", default={"amount": 0, "reason": "nobody answered"})
    if not answer["amount"]:
        return f"refused: {answer['reason']}"
    payment = run.using(key="refund-A-17").once(refund, case["customer"], answer["amount"])
    return f"{answer['amount']} refunded with {payment}"


# --- the desk --------------------------------------------------------------------------------------------------------


def answer_all(store: keepstep.Store, provider: Provider) -> None:
    """What a person does with the inbox; in life this is another process, hours later."""
    for gate in store.inbox("refund").items:
        print(f"  is asked: {gate.prompt}")
        if gate.about == "doubt":
            booked = provider.books.get(gate.details["idempotency_key"])
            print(f"  finds in the provider's books: {booked}")
            answer: dict[str, Any] = {"outcome": "not_happened"}
            if booked is not None:
                answer = {"outcome": "happened", "result": "the payment in the books"}
        else:
            answer = {"amount": 120, "reason": "one of three parts was broken"}
        print(f"  answers: {answer}")
        store.answer(gate.id, answer, by="carol")


def main() -> None:
    """Carry the run as often as it has something to do; answer in between."""
    provider = Provider()
    with tempfile.TemporaryDirectory() as folder, keepstep.open(Path(folder) / "runs.db") as store:
        while True:
            print("the agent")
            outcome = store.carry(lambda run: agent(run, provider), "refund-1", workflow="refund")
            print(f"  {outcome.status}: {outcome.result or 'waits for an answer'}")
            if outcome.finished:
                break
            print("the desk")
            answer_all(store, provider)

        print(f"the provider booked {len(provider.books)} payment")
        for effect in store.effects("refund-1"):
            print(f"the ledger: {effect.tool} {effect.status} {effect.result!r}")


if __name__ == "__main__":
    main()
