"""What counts as a measurement. Each broken rule is one sentence that names both values.

Each of `ranges`, `totals`, `times` and `recomputed` holds the rules about one subject; here stands
what was asked for, and the order of all. A property of the engine, such as imbalance or power
capping, is never a broken rule: it is shown.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from harness.results import ranges, recomputed, times, totals
from harness.results.bench import BenchFile

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
    window_s: float | None = None
    """Seconds between a cell's begin and end by the kit's own clock: its wave lies within them."""


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
    findings.broken.extend(ranges.impossible(bench))
    findings.broken.extend(totals.misshapen(bench))
    if not findings.broken:
        # Only numbers that are possible can be computed with.
        findings.broken.extend(totals.contradictions(bench))
        findings.broken.extend(times.contradictions(bench))
        findings.broken.extend(recomputed.differences(bench))
    findings.broken.extend(times.outside(bench.duration, expected.window_s))
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
    errors = [error for error in bench.errors or () if error]
    first = f": {errors[0]}" if errors else ""
    if failed or bench.completed == 0:
        yield f"{bench.completed} of {prompts} requests completed, {failed} failed{first}"
    elif bench.completed != prompts:
        yield (
            f"{bench.completed} requests completed and {failed} failed, but {prompts} were sent: "
            f"{abs(prompts - bench.completed - failed)} are unaccounted for"
        )
    elif bench.num_prompts != prompts:
        yield f"the file says that {bench.num_prompts} requests were sent, expected {prompts}"
    if bench.errors is not None and len(errors) != failed:
        yield f"{len(errors)} requests have an error text{first}, but {failed} failed"


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
        wrong = [lens[row] for row in bench.succeeded if row < len(lens) and lens[row] != wanted]
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
