"""The table as text, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from benchmarks.peers import PEERS
from benchmarks.row import Row

HEADER = ("measure", "keepstep", "value", "must reach", "", *PEERS)


def render(rows: Sequence[Row], missing: Mapping[str, str]) -> str:
    """The table, one line per measure. A peer that is not installed is said to be missing."""
    lines = [HEADER, *(_cells(row, missing) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADER))]
    lines.insert(1, tuple("-" * width for width in widths))
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)


def _cells(row: Row, missing: Mapping[str, str]) -> tuple[str, ...]:
    bound = f"{row.bound.sign} {row.bound.limit:g}" if row.bound else ""
    value = "" if row.broken else f"{number(row.value)} {row.unit}"
    peers = [missing.get(name) or row.peers.get(name, "-") for name in PEERS]
    return (row.measure, row.broken or row.figure, value, bound, row.verdict, *peers)


def number(value: float) -> str:
    """Three digits, however large."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def to_json(rows: Sequence[Row], about: Mapping[str, Any]) -> str:
    """Everything measured, with the rounds that the values are medians of."""
    lines = [{**asdict(row), "verdict": row.verdict} for row in rows]
    return json.dumps({"about": about, "rows": lines}, indent=2)
