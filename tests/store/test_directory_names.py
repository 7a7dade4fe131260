"""No id escapes its folder, and no two ids meet, on any file system."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepstep.store.conformance.extremes import HOSTILE_IDS
from keepstep.store.directory.names import NAME_CHARS_MAX, SUFFIX, file_name

SAFE = re.compile(r"[a-z0-9_%~.-]+\.jsonl")
DEVICES = {"con", "prn", "aux", "nul", *(f"{kind}{number}" for kind in ("com", "lpt") for number in range(10))}


def check(name: str) -> None:
    assert SAFE.fullmatch(name)
    assert name[0] != "."
    assert len(name) <= NAME_CHARS_MAX + len(SUFFIX)
    assert name.split(".", maxsplit=1)[0] not in DEVICES


@pytest.mark.parametrize(
    ("run_id", "name"),
    [
        ("refund-42", "refund-42.jsonl"),
        ("proj/task.1 final", "proj%2ftask.1%20final.jsonl"),
        ("a_b", "a_b.jsonl"),
        ("RUN", "%52%55%4e.jsonl"),
        ("..", "%2e..jsonl"),
        ("../x", "%2e.%2fx.jsonl"),
        ("/etc/x", "%2fetc%2fx.jsonl"),
        ("con", "%63on.jsonl"),
        ("con.x", "%63on.x.jsonl"),
        ("console", "console.jsonl"),
        ("100%", "100%25.jsonl"),
        ("\u00e9", "%c3%a9.jsonl"),
        ("e\u0301", "e%cc%81.jsonl"),
        ("~", "%7e.jsonl"),
        ("", "%.jsonl"),
        ("x" * 120, "x" * 120 + ".jsonl"),
        ("x" * 121, "x" * 87 + "~818cf35dddf1e20f62b789cb3ba4c6df.jsonl"),
    ],
)
def test_a_name_can_be_read(run_id: str, name: str) -> None:
    assert file_name(run_id) == name


def test_hostile_ids_have_names_of_their_own() -> None:
    names = [file_name(one) for one in HOSTILE_IDS]
    for name in names:
        check(name)
    assert len(set(names)) == len(names)


@given(st.text(max_size=300), st.text(max_size=300))
def test_names_are_safe_and_differ(one: str, other: str) -> None:
    check(file_name(one))
    assert (file_name(one) == file_name(other)) == (one == other)


@given(st.text(max_size=60))
def test_ids_that_only_look_the_same_have_different_names(one: str) -> None:
    for other in (one.upper(), one.lower(), *(unicodedata.normalize(form, one) for form in ("NFC", "NFD", "NFKC"))):
        assert (file_name(one) == file_name(other)) == (one == other)


@given(st.text(alphabet="abx%2f5e6~./", max_size=130), st.text(alphabet="abx%2f5e6~./", max_size=130))
def test_what_looks_escaped_already_is_escaped_again(one: str, other: str) -> None:
    assert (file_name(one) == file_name(other)) == (one == other)
