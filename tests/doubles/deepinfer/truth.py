"""What the double really did, for tests to compare with, and what it should do wrong.

``DOUBLE_TRUTH`` names a folder: each rank writes ``rank-N.json`` there when it closes.
``DOUBLE_FAULT`` is JSON: ``{"rank": 1, "kind": "dies" | "hangs" | "drops" | "wrong-length" |
"dies-loading", "step": 5}``.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any


def fault(kind: str, rank: int) -> dict[str, Any] | None:
    """Return the fault that this rank is to show, if it is of this kind."""
    given: dict[str, Any] = json.loads(os.environ.get("DOUBLE_FAULT", "{}"))
    return given if (given.get("kind"), given.get("rank")) == (kind, rank) else None


class Truth:
    """Every step with when it returned, and when the next call came."""

    def __init__(self, rank: int) -> None:
        self._rank = rank
        self.steps: list[dict[str, Any]] = []

    def called(self) -> None:
        """Note that the caller is back."""
        if self.steps:
            self.steps[-1]["next_call"] = time.perf_counter()

    def returned(self, kind: str, outputs: list[Any]) -> None:
        """Note what a step returns."""
        tokens: dict[str, int] = {}
        for output in outputs:
            tokens[output.request_id] = tokens.get(output.request_id, 0) + 1
        self.steps.append(
            {
                "kind": kind,
                "tokens": tokens,
                "drafted": sum(max(0, output.draft_tok - 1) for output in outputs),
                "accepted": sum(max(0, output.accept_tok - 1) for output in outputs),
                "returned": time.perf_counter(),
            }
        )

    def write(self) -> None:
        """Write the truth, where a folder is named."""
        self.called()
        if folder := os.environ.get("DOUBLE_TRUTH"):
            path = Path(folder) / f"rank-{self._rank}.json"
            path.write_text(json.dumps(self.steps))
