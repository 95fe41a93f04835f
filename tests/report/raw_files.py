"""Raw files of synthetic numbers, consistent, so that they pass every rule of a measurement."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from pydantic import JsonValue

from harness.suite.plan import RequestSet, Session

STEP_TOKENS = 2.5
"""Tokens of one decoding step where five are drafted."""


@dataclass(frozen=True, kw_only=True)
class Wave:
    """The numbers of one cell; rates in tokens per second."""

    output_throughput: float
    mean_tpot_ms: float | None = None
    acceptance_percent: float | None = None

    def duration_s(self, requests: RequestSet) -> float:
        return requests.prompts * requests.output_len / self.output_throughput

    def tpot_s(self, requests: RequestSet) -> float:
        """Return the time of one token; unless it is given, decoding takes most of the wave."""
        if self.mean_tpot_ms is not None:
            return self.mean_tpot_ms / 1e3
        return 0.75 * self.duration_s(requests) / max(requests.output_len - 1, 1)

    def ttfts_s(self, requests: RequestSet) -> list[float]:
        """Return evenly spaced first-token times; the last request ends with the wave."""
        queued = self.duration_s(requests) - (requests.output_len - 1) * self.tpot_s(requests)
        assert queued > 0, "decoding alone takes longer than the wave"
        return [queued * (index + 1) / requests.prompts for index in range(requests.prompts)]


def _ids_sha256(requests: RequestSet) -> str:
    return hashlib.sha256(requests.prompts_file.encode()).hexdigest()


def manifest(requests: RequestSet) -> dict[str, JsonValue]:
    """Return what describes a set of prompts."""
    return {
        "made_by": "nothing: synthetic",
        "client_args": [],
        "special_token_ids": [],
        "count": requests.prompts,
        "lengths": [requests.input_len] * requests.prompts,
        "with_reserved_ids": 0,
        "sha256": _ids_sha256(requests),
        "samples": [],
    }


def bench(model: str, requests: RequestSet, wave: Wave, lens: list[int]) -> dict[str, JsonValue]:
    """Return what ``vllm bench serve --save-detailed`` writes."""
    count, tpot = requests.prompts, wave.tpot_s(requests)
    input_tokens, output_tokens = count * requests.input_len, sum(lens)
    ttfts, duration = wave.ttfts_s(requests), wave.duration_s(requests)
    decoding = [(length - 1) * tpot for length in lens]
    tpots = [tpot for length in lens if length > 1]
    accepted = {"spec_decode_acceptance_rate": wave.acceptance_percent}
    return {
        "model_id": model,
        "num_prompts": count,
        "max_concurrency": requests.concurrency,
        "duration": duration,
        "completed": count,
        "failed": 0,
        "total_input_tokens": input_tokens,
        "total_output_tokens": output_tokens,
        "output_throughput": output_tokens / duration,
        "total_token_throughput": (input_tokens + output_tokens) / duration,
        "mean_ttft_ms": 1e3 * sum(ttfts) / count,
        "mean_tpot_ms": 1e3 * sum(tpots) / len(tpots) if tpots else 0.0,
        "latencies": [first + rest for first, rest in zip(ttfts, decoding, strict=True)],
        "input_lens": [requests.input_len] * count,
        "output_lens": list(lens),
        "ttfts": list(ttfts),
        # Tokens come in two chunks: gaps are between chunks.
        "itls": [[rest / 2, rest / 2] if rest else [] for rest in decoding],
        "errors": [""] * count,
        **(accepted if wave.acceptance_percent is not None else {}),
    }


def counters(requests: RequestSet, lens: list[int], factor: int) -> str:
    """Return the server's counters: all that was served, times 0 before the wave and 1 after."""
    tokens = {"prompt": requests.prompts * requests.input_len, "generation": sum(lens)}
    return "".join(
        f"# TYPE vllm:{kind}_tokens_total counter\n"
        f'vllm:{kind}_tokens_total{{engine="0"}} {factor * count}.0\n'
        for kind, count in tokens.items()
    )


def batch(
    session: Session, requests: RequestSet, wave: Wave, lens: list[int]
) -> dict[str, JsonValue]:
    """Return what the launcher merges from its ranks."""
    duration, tpot = wave.duration_s(requests), wave.tpot_s(requests)
    stamped = session.drive != "generate"
    drafts = session.engine == "deepinfer" and requests.output_len > 1
    steps = round(requests.output_len / STEP_TOKENS) if drafts else 0
    rows: list[JsonValue] = [
        {
            "index": index,
            "rank": index % session.ranks,
            "start_s": 0.0,
            "first_token_s": first if stamped else None,
            "last_token_s": first + (lens[index] - 1) * tpot if stamped else None,
            "prompt_tokens": requests.input_len,
            "output_tokens": lens[index],
            "finish_reason": "length",
            "drafted": 5 * steps,
            "accepted": lens[index] - steps if drafts else 0,
            "drafting_steps": steps,
        }
        for index, first in enumerate(wave.ttfts_s(requests))
    ]
    ranks: list[JsonValue] = [
        {
            "rank": rank,
            "start_s": 0.0,
            # No two ranks finish at the same time; the first one ends the wave.
            "end_s": duration * (1 - 0.01 * rank),
            "requests": len(lens[rank :: session.ranks]),
            "output_tokens": sum(lens[rank :: session.ranks]),
            "preempted": rank % 2,
            "engine_steps": steps + 100 if session.engine == "deepinfer" else None,
        }
        for rank in range(session.ranks)
    ]
    return {
        "duration_s": duration,
        "ids_sha256": _ids_sha256(requests),
        "ranks": ranks,
        "requests": rows,
    }
