"""What every in-process engine offers to `harness.inside.rank`, and the record that it fills."""

from __future__ import annotations

from typing import Any, Protocol

Prompt = tuple[int, list[int]]
"""Its index in the prompts file, and its token ids."""


class Backend(Protocol):
    """An engine as a rank drives it."""

    def info(self) -> dict[str, Any]:
        """Return what it is: engine, version, sampling, kv_cache_tokens, max_num_seqs."""
        ...

    def run(self, wave: dict[str, Any], prompts: list[Prompt]) -> dict[str, Any]:
        """Serve ``prompts``; return start and end, counts, and one record for each request."""
        ...

    def close(self) -> None:
        """Shut the engine down, on all ranks together."""
        ...


def request_record(index: int, prompt_tokens: int, start: float) -> dict[str, Any]:
    """Return an empty record of one request; times are of the machine's monotonic clock."""
    return {
        "index": index,
        "start": start,
        "first_token": None,
        "last_token": None,
        "prompt_tokens": prompt_tokens,
        "output_tokens": 0,
        "finish_reason": "",
        "drafted": 0,
        "accepted": 0,
        "drafting_steps": 0,
    }
