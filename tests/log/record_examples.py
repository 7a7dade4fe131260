"""One record of every kind with every field set, in the values that the stored form is pinned by."""

from keepstep.log.records import (
    Answered,
    Asked,
    Began,
    Cancelled,
    CancelRequested,
    Claimed,
    Doubted,
    Expired,
    Failed,
    Finished,
    Inherited,
    Noted,
    Opened,
    Pruned,
    Raised,
    Record,
    Released,
    Reopened,
    Returned,
    RolledBack,
    Saved,
    Sent,
    Settled,
    Slept,
    Tagged,
    Took,
    UndoBegan,
    UndoFailed,
    Undone,
    Witnessed,
)  # fmt: skip

KEY = bytes(range(16))
OTHER_KEY = bytes(range(16, 32))
COMMON = {
    "seq": 7,
    "at_us": 1_750_000_000_000_000,
    "epoch": 3,
    "batch": b"8 random",
    "body": b"B" * 16,
    "body_bytes": 41,
}

EXAMPLES: dict[str, Record] = {
    one.kind: one
    for one in (
        Opened(
            workflow="refund", incarnation=2, parent_run="r-0", parent_seq=5, parent_step=4, flow_version="2026-01",
            flow_fingerprint=b"F" * 16, effects="ask", **COMMON,
        ),
        Saved(
            step=9, next="plan", label="before refund", line=2, parent=6, depth=12, jump=3, jump_step=4, frame=2,
            bases=[1, 2, 300], whole_bytes=70_000, weight=900, key_bytes=20_000, version=4,
            flow_version="2026-02", flow_fingerprint=b"F" * 16, **COMMON,
        ),
        Finished(step=9, **COMMON),
        Failed(step=9, reason="deaths", error="ValueError", **COMMON),
        CancelRequested(**COMMON),
        Cancelled(**COMMON),
        Reopened(reason="retried", **COMMON),
        RolledBack(
            to=4, to_step=3, line=5, next="plan", label="good", depth=3, jumps=[(2, 1, 2), (4, 3, 3)], version=2,
            flow_version="2026-01", **COMMON,
        ),
        Tagged(tags={"customer": "ada", "amount": 40, "rate": 1.5, "vip": True, "old": None}, **COMMON),
        Noted(namespace="progress", key="k", **COMMON),
        Pruned(dropped=[(2, 4), (9, 9)], renewed=[(10, b"N" * 16, 77, 0, [1, 2])], **COMMON),
        Claimed(owner="owner-1", reason="took_over", before="owner-0", **COMMON),
        Released(reason="waits", **COMMON),
        Began(
            key=KEY, tool="charge", once=False, attempt=2, step=9, line=2, arguments=OTHER_KEY, tool_key=b"T" * 16,
            approval=5, outer=b"O" * 16, reversible=True, idempotent=True, undo="refund", **COMMON,
        ),
        Returned(key=KEY, began=6, tool="charge", arguments=OTHER_KEY, took_us=1234, step=9, line=2, **COMMON),
        Raised(key=KEY, began=6, error="CardDeclined", **COMMON),
        Doubted(key=KEY, began=6, reason="died", **COMMON),
        Settled(key=KEY, began=6, happened=False, by="reconciled", **COMMON),
        Witnessed(key=KEY, began=6, outcome="raised", **COMMON),
        UndoBegan(key=KEY, began=6, attempt=2, to=4, **COMMON),
        Undone(key=KEY, began=6, **COMMON),
        UndoFailed(key=KEY, began=6, in_doubt=True, **COMMON),
        Inherited(
            key=KEY, tool="charge", parent_seq=6, outcome="open", arguments=OTHER_KEY, tool_key=b"T" * 16,
            reversible=True, **COMMON,
        ),
        Asked(gate="g-1", key=KEY, about="approval", until_us=1_750_000_060_000_000, effect=OTHER_KEY, **COMMON),
        Answered(gate="g-1", key=KEY, asked=6, **COMMON),
        Expired(gate="g-1", key=KEY, asked=6, **COMMON),
        Slept(key=KEY, until_us=1_750_000_060_000_000, message="paid", **COMMON),
        Sent(name="paid", message_id=OTHER_KEY, **COMMON),
        Took(key=KEY, sent=6, **COMMON),
    )
}  # fmt: skip
