"""The toy in-process engine, run by the real launcher: every token takes a millisecond."""

from __future__ import annotations

import time
from typing import Any

from harness.inside.backend import Prompt, request_record

TOKEN_SECONDS = 0.001


class ToyBackend:
    def __init__(self, job: dict[str, Any], rank: int) -> None:
        self._greeting = job["engine"]["greeting"]

    def info(self) -> dict[str, Any]:
        return {
            "engine": "toy",
            "version": self._greeting,
            "sampling": {},
            "kv_cache_tokens": 7,
            "max_num_seqs": 7,
        }

    def run(self, wave: dict[str, Any], prompts: list[Prompt]) -> dict[str, Any]:
        start = time.perf_counter()
        requests = []
        for index, ids in prompts:
            record = request_record(index, len(ids), start)
            record["first_token"] = start + TOKEN_SECONDS
            record["last_token"] = start + TOKEN_SECONDS * wave["output_len"]
            record["output_tokens"] = wave["output_len"]
            record["finish_reason"] = "length"
            requests.append(record)
        end = start + TOKEN_SECONDS * wave["output_len"]
        return {"start": start, "end": end, "counts": {"preempted": 0}, "requests": requests}

    def close(self) -> None:
        pass
