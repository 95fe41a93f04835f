"""The range of every number in a result: what no clock and no counter can have given."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from harness.errors import printable
from harness.results.bench import BenchFile, shown

LARGEST = 1e12
"""Of a time in ms (31 years), of a rate, of a count: anything beyond was not measured."""

STATISTIC = re.compile(r"(?P<kind>mean|median|std|p\d[^_]*)_(?P<latency>\w+)_ms")
"""A statistic of a latency by its key, such as ``p99.9_e2el_ms``."""
PERCENTILE = re.compile(r"p(\d{1,3}(?:\.\d{1,9})?)")

TIME = "which no request can have taken"
RATE = "which is not a rate"
COUNT = "which is not a possible count"


def statistics_of(bench: BenchFile) -> dict[tuple[str, str], tuple[str, object]]:
    """Return the statistics in a file: (kind, latency) -> (key, value), null ones left out."""
    given = {**bench.other_numbers, "mean_ttft_ms": bench.mean_ttft_ms}
    given["mean_tpot_ms"] = bench.mean_tpot_ms
    return {
        (match["kind"], match["latency"]): (key, value)
        for key, value in given.items()
        if value is not None and (match := STATISTIC.fullmatch(key))
    }


def percentile(kind: str) -> float | None:
    """Return which percentile ``p99.9`` is; None where it is none."""
    match = PERCENTILE.fullmatch(kind)
    return float(match[1]) if match and float(match[1]) <= 100 else None


def impossible(bench: BenchFile) -> Iterator[str]:
    """Yield a sentence for each number out of its range; of an array, for the first one."""
    yield from _times(bench)
    yield from _rates(bench)
    yield from _counts(bench)
    yield from _acceptance(bench)
    yield from _arrays(bench)
    for key, value in sorted(bench.other_numbers.items()):
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if number and not STATISTIC.fullmatch(key) and not _within(value):
            yield f"{printable(key)[:40]} is {_short(value)}, which no client writes"


def _times(bench: BenchFile) -> Iterator[str]:
    for (kind, _), (key, value) in sorted(statistics_of(bench).items()):
        if kind.startswith("p") and percentile(kind) is None:
            yield f"{key}: there is no percentile {kind[1:20]}"
        elif isinstance(value, bool) or not isinstance(value, int | float):
            yield f"{key} is {shown(value)}, which is not a time"
        elif not _within(value):
            yield f"{key} is {_short(value)}, {TIME}"
    positive = {"duration": bench.duration, "mean_ttft_ms": bench.mean_ttft_ms}
    positive |= {"mean_tpot_ms": bench.mean_tpot_ms} if bench.has_tpot else {}
    for key, value in positive.items():
        if value == 0 or (key == "duration" and not _within(value)):
            yield f"{key} is {_short(value)}, {TIME}"


def _rates(bench: BenchFile) -> Iterator[str]:
    for key in (
        "request_throughput", "request_goodput", "input_throughput", "output_throughput",
        "total_token_throughput", "max_output_tokens_per_s", "rtfx",
    ):  # fmt: skip
        value = getattr(bench, key)
        if value is not None and not _within(value):
            yield f"{key} is {_short(value)}, {RATE}"
    # Both may be infinite: all at once, evenly.
    for key, value in (("request_rate", bench.rate), ("burstiness", bench.burstiness)):
        if value is not None and not value > 0:
            yield f"{key} is {_short(value)}, {RATE}"


def _counts(bench: BenchFile) -> Iterator[str]:
    least = {
        "num_prompts": 1,
        "max_concurrency": 1,
        "completed": 0,
        "failed": 0,
        "max_concurrent_requests": 0,
        "total_input_tokens": 0,
        "total_output_tokens": 0,
        "spec_decode_num_drafts": 0,
        "spec_decode_draft_tokens": 0,
        "spec_decode_accepted_tokens": 0,
    }
    for key, lowest in least.items():
        value = getattr(bench, key)
        if value is not None and not lowest <= value <= LARGEST:
            yield f"{key} is {value}, {COUNT}"
    if bench.max_concurrency is not None and 1 <= bench.num_prompts < bench.max_concurrency:
        yield (
            f"a concurrency of {bench.max_concurrency}, which {bench.num_prompts} requests "
            "cannot reach"
        )


def _acceptance(bench: BenchFile) -> Iterator[str]:
    rate, length = bench.spec_decode_acceptance_rate, bench.spec_decode_acceptance_length
    if rate is not None and not 0 <= rate <= 100:
        yield f"spec_decode_acceptance_rate is {_short(rate)}, which is not a percentage"
    if length is not None and not 1 <= length <= LARGEST:
        yield f"spec_decode_acceptance_length is {_short(length)}: every step makes one token"
    for value in bench.spec_decode_per_position_acceptance_rates or ():
        if not 0 <= value <= 1:
            yield f"{_short(value)} among the acceptance rates by position, which is not a share"
            return


def _arrays(bench: BenchFile) -> Iterator[str]:
    for key in ("latencies", "ttfts", "start_times", "queue_times"):
        for place, value in enumerate(getattr(bench, key) or ()):
            # A request can be sent the moment it arrives; clocks can begin anywhere.
            if not (math.isfinite(value) if key == "start_times" else _within(value)):
                yield f"{key}[{place}] is {_short(value)}, {TIME}"
                break
    for key in ("input_lens", "output_lens"):
        for place, value in enumerate(getattr(bench, key) or ()):
            if not 0 <= value <= LARGEST:
                yield f"{key}[{place}] is {value}, {COUNT}"
                break
    for place, gaps in enumerate(bench.itls or ()):
        wrong = next((gap for gap in gaps if not _within(gap)), None)
        if wrong is not None:
            yield f"itls[{place}] holds {_short(wrong)}, {TIME}"
            break


def _within(value: float) -> bool:
    """Return whether a time or rate is finite, not negative, and of sensible size."""
    return 0 <= value <= LARGEST


def _short(value: float) -> str:
    """Write a number that can have hundreds of digits."""
    return str(value) if len(str(value)) <= 24 else f"{str(value)[:20]}..."
