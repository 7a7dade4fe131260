"""`carry` runs a function of a run and says how the run was left: no exceptions to sort.

The first attempt fails in the middle, which makes the run `failed` with its error. The second goes on from the last
checkpoint. The third finds that nothing is left to do, and gets the result all the same.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import keepstep

PAGES = ["home", "prices", "contact"]


class Connection:
    """Fails once, as connections do."""

    def __init__(self) -> None:
        self.works = False

    def fetch(self, page: str) -> str:
        """The page's text."""
        if page == "prices" and not self.works:
            self.works = True
            raise TimeoutError("the server did not answer")
        return f"the text of {page}"


def main() -> None:
    """Carry the same run three times."""
    connection = Connection()

    def crawl(run: keepstep.Run) -> int:
        state = run.state or {"texts": {}}
        for page in PAGES:
            if page not in state["texts"]:
                run.note(f"fetching {page}")
                state["texts"][page] = connection.fetch(page)
                run.save(state)
                print(f"  fetched {page}")
        return len(state["texts"])

    with tempfile.TemporaryDirectory() as folder, keepstep.open(Path(folder) / "runs.db") as store:
        for attempt in ("first", "second", "third"):
            print(f"{attempt} attempt")
            outcome = store.carry(crawl, "crawl-1", workflow="crawl")
            print(f"  {outcome.status}: {outcome.error or outcome.result}")


if __name__ == "__main__":
    main()
