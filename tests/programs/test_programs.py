"""Random programs, and whatever can happen to them: no effect happens twice without consent, and every run ends."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from tests.conftest import FOLDER_IN_MEMORY
from tests.programs.driver import Driver
from tests.programs.language import PROGRAMS, Program
from tests.programs.story import STORIES, Story

QUICK = settings(
    derandomize=True,  # the same on every machine: what is new is looked for by the soak test
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
SOAK = settings(QUICK, max_examples=3000, derandomize=False, print_blob=True)
PLACES = [(kind, mode) for kind in ("memory", "dir", "sqlite") for mode in ("sync", "async")]
STORIES_QUICK = {("memory", "sync"): 250, ("memory", "async"): 40, ("sqlite", "sync"): 50, ("sqlite", "async"): 25}


def tell(kind: str, mode: str, how: settings) -> None:
    """Let one story after another happen at such a place."""

    @how
    @given(program=PROGRAMS, story=STORIES)
    def told(program: Program, story: Story) -> None:
        where = FOLDER_IN_MEMORY if Path(FOLDER_IN_MEMORY).is_dir() else None
        with tempfile.TemporaryDirectory(prefix="keepstep-programs-", dir=where) as folder:
            driver = Driver(kind, mode, Path(folder), program)
            try:
                driver.play(story)
            finally:
                driver.close()

    told()


@pytest.mark.parametrize(("kind", "mode"), STORIES_QUICK)
def test_whatever_happens_to_a_program_nothing_is_done_twice_and_every_run_ends(kind, mode):
    tell(kind, mode, settings(QUICK, max_examples=STORIES_QUICK[kind, mode]))


@pytest.mark.soak
@pytest.mark.parametrize(("kind", "mode"), PLACES)
def test_whatever_happens_to_thousands_of_programs_nothing_is_done_twice_and_every_run_ends(kind, mode):
    tell(kind, mode, SOAK)
