"""What counts as a measurement. Each broken rule is one sentence that names both values.

A property of the engine, such as imbalance or power capping, is never a broken rule: it is shown.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from harness.results.bench import BenchFile

EXACT = 1e-9
"""Relative difference between numbers that one program computed from the same values."""
RECOMPUTED = 1e-6
"""The same for statistics recomputed from arrays of decimal numbers."""
TOTAL_TOLERANCE = 0.005
"""total = output x (in + out) / out, where text prompts can drift by some tokens."""


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What a result must match; a field that is None is unknown, and not compared."""

    model: str | None = None
    input_len: int | None = None
    output_len: int | None = None
    concurrency: int | None = None
    request_rate: float | None = None
    """Arrivals per second; where a concurrency is expected, all are sent as soon as it allows."""
    prompts: int | None = None
    input_lens: tuple[int, ...] | None = None
    """The sequence of lengths in the prompts' manifest."""


@dataclass(frozen=True)
class Findings:
    """What was found: broken rules, and rules that could not be applied."""

    broken: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)


def check(bench: BenchFile, expected: Expected) -> Findings:
    """Apply every rule that ``bench`` and ``expected`` allow."""
    findings = Findings()
    findings.broken.extend(_complete(bench, expected))
    if bench.completed == 0:
        # Zeros are the absence of a measurement: rules about numbers would add nothing.
        return findings
    for name, value in _impossible(bench):
        findings.broken.append(f"{name} is {value}, which no request can have taken")
    if not findings.broken:
        findings.broken.extend(_consistent(bench))
        findings.broken.extend(_recomputed(bench))
    findings.broken.extend(_as_asked(bench, expected))
    given = {
        "--model": expected.model is not None,
        "--input": expected.input_len is not None,
        "--output": expected.output_len is not None,
        "--concurrency": expected.concurrency is not None,
        "--prompts": expected.prompts is not None,
    }
    findings.skipped.extend(flag for flag, known in given.items() if not known)
    if bench.ttfts is None:
        findings.skipped.append("arrays (--save-detailed)")
    return findings


def _complete(bench: BenchFile, expected: Expected) -> Iterator[str]:
    prompts = expected.prompts if expected.prompts is not None else bench.num_prompts
    failed = bench.failed or 0
    first = next((f": {error}" for error in bench.errors or () if error), "")
    if failed or bench.completed == 0:
        yield f"{bench.completed} of {prompts} requests completed, {failed} failed{first}"
    elif bench.completed != prompts:
        yield (
            f"{bench.completed} requests completed and {failed} failed, but {prompts} were sent: "
            f"{abs(prompts - bench.completed - failed)} are unaccounted for"
        )


def _impossible(bench: BenchFile) -> Iterator[tuple[str, float]]:
    """Yield times that are not finite, negative, or zero although something was done."""
    named = {
        key: value
        for key, value in bench.other_numbers.items()
        if key.endswith("_ms") and isinstance(value, int | float)
    }
    named |= {"mean_ttft_ms": bench.mean_ttft_ms, "mean_tpot_ms": bench.mean_tpot_ms}
    for key, value in sorted(named.items()):
        if not math.isfinite(value) or value < 0:
            yield key, value
    positive = {"duration": bench.duration, "mean_ttft_ms": bench.mean_ttft_ms}
    positive |= {"mean_tpot_ms": bench.mean_tpot_ms} if bench.has_tpot else {}
    for key, value in positive.items():
        if value == 0:
            yield key, value
    if not math.isfinite(bench.duration) or bench.duration < 0:
        yield "duration", bench.duration


def _consistent(bench: BenchFile) -> Iterator[str]:
    """Yield contradictions between the file's own totals."""
    total = bench.total_input_tokens + bench.total_output_tokens
    for name, rate, tokens in (
        ("output_throughput", bench.output_throughput, bench.total_output_tokens),
        ("total_token_throughput", bench.total_token_throughput, total),
    ):
        if not math.isclose(rate * bench.duration, tokens, rel_tol=EXACT):
            yield (
                f"{name} {rate:.6g} x duration {bench.duration:.6g} s is "
                f"{rate * bench.duration:.6g} tokens, but the file counts {tokens}"
            )
    tokens_each = bench.total_output_tokens / bench.completed
    if bench.has_tpot and bench.max_concurrency:
        # At most `concurrency` requests make a token every TPOT; the first one of n is not in it.
        bound = bench.max_concurrency / (bench.mean_tpot_ms / 1e3) * tokens_each / (tokens_each - 1)
        if bench.output_throughput > bound * (1 + RECOMPUTED):
            yield (
                f"output_throughput {bench.output_throughput:.6g} tok/s is above {bound:.6g}, "
                f"the most that {bench.max_concurrency} requests at {bench.mean_tpot_ms:.4g} ms "
                "per token can give"
            )


def _recomputed(bench: BenchFile) -> Iterator[str]:
    """Yield statistics that differ from the arrays they were computed from."""
    for name, values in _arrays(bench).items():
        if not values:
            continue
        for key, stated in _stated(bench, name):
            found = 1e3 * _statistic(key.split("_")[0], values)
            if not math.isclose(stated, found, rel_tol=RECOMPUTED, abs_tol=RECOMPUTED):
                yield f"{key} is {stated:.6g}, but the file's own arrays give {found:.6g}"


def _arrays(bench: BenchFile) -> dict[str, list[float]]:
    if bench.ttfts is None or bench.itls is None or bench.output_lens is None:
        return {}
    rows = bench.succeeded
    arrays = {"e2el": list(bench.latencies or ())}
    arrays["ttft"] = [bench.ttfts[row] for row in rows]
    arrays["itl"] = [gap for row in rows for gap in bench.itls[row]]
    if len(arrays["e2el"]) == len(rows):
        arrays["tpot"] = [
            (latency - bench.ttfts[row]) / (bench.output_lens[row] - 1)
            for row, latency in zip(rows, arrays["e2el"], strict=True)
            if bench.output_lens[row] > 1
        ]
    return arrays


def _stated(bench: BenchFile, name: str) -> Iterator[tuple[str, float]]:
    numbers = {
        **bench.other_numbers,
        "mean_ttft_ms": bench.mean_ttft_ms,
        "mean_tpot_ms": bench.mean_tpot_ms,
    }
    for key, value in numbers.items():
        kind = key.removesuffix(f"_{name}_ms")
        known = kind in ("mean", "median", "std") or (kind[:1] == "p" and kind[1:2].isdigit())
        if kind != key and known and isinstance(value, int | float):
            yield key, value


def _statistic(kind: str, values: Sequence[float]) -> float:
    """Compute as the client does: numpy's mean, median, population std and linear percentiles."""
    match kind:
        case "mean":
            return float(np.mean(values))
        case "median":
            return float(np.median(values))
        case "std":
            return float(np.std(values))
        case _:
            return float(np.percentile(values, float(kind[1:])))


def _as_asked(bench: BenchFile, expected: Expected) -> Iterator[str]:
    if expected.model is not None and bench.model_id != expected.model:
        yield f"the model is {bench.model_id!r}, not {expected.model!r}"
    if expected.concurrency is not None and bench.max_concurrency != expected.concurrency:
        yield f"concurrency {bench.max_concurrency}, expected {expected.concurrency}"
    if expected.concurrency is not None and bench.request_rate not in (None, "inf"):
        yield f"request rate {bench.request_rate}, expected none"
    if expected.request_rate is not None:
        if bench.request_rate != expected.request_rate:
            yield f"request rate {bench.request_rate}, expected {expected.request_rate:g}"
        if bench.max_concurrency is not None:
            yield f"at most {bench.max_concurrency} requests in flight, expected no limit"
    if expected.output_len is not None:
        wanted = expected.output_len
        lens = bench.output_lens or ()
        wrong = [lens[row] for row in bench.succeeded if lens[row] != wanted]
        if wrong:
            yield f"output lengths {spread(wrong)}, expected {wanted}"
        elif bench.total_output_tokens != bench.completed * wanted:
            yield (
                f"{bench.total_output_tokens} output tokens, expected {bench.completed} x {wanted} "
                f"= {bench.completed * wanted}"
            )
    if expected.input_lens is not None and bench.input_lens is not None:
        if bench.input_lens != expected.input_lens:
            yield (
                f"input lengths {spread(bench.input_lens)}, but the prompts have "
                f"{spread(expected.input_lens)}"
            )
    elif expected.input_len is not None:
        wanted = expected.input_len
        if not math.isclose(
            bench.total_input_tokens, bench.completed * wanted, rel_tol=TOTAL_TOLERANCE
        ):
            yield (
                f"{bench.total_input_tokens} input tokens, expected {bench.completed} x {wanted} "
                f"= {bench.completed * wanted}"
            )
    if expected.input_len is not None and expected.output_len is not None:
        ratio = (expected.input_len + expected.output_len) / expected.output_len
        total = bench.output_throughput * ratio
        if not math.isclose(bench.total_token_throughput, total, rel_tol=TOTAL_TOLERANCE):
            yield (
                f"total_token_throughput {bench.total_token_throughput:.6g} tok/s, but the "
                f"lengths give {total:.6g}"
            )


def spread(lengths: Sequence[int]) -> str:
    """Write ``4 x 1024`` for lengths, the most frequent first."""
    common = Counter(lengths).most_common(3)
    more = ", ..." if len(set(lengths)) > len(common) else ""
    return ", ".join(f"{count} x {length}" for length, count in common) + more
