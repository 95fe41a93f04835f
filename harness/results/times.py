"""A result's times against each other: within a request, and the requests within the duration.

Bounds of the duration D, for n requests whose latencies sum to S, the longest being L, at most c of
them in flight:

- D >= L, and D >= S / c: never are more than c requests in flight.
- All sent at once (a closed loop): until the last request starts, at T, the client keeps c in
  flight, and every request has ended by T + L. So S >= c T + (D - T) and T >= D - L, which gives
  D <= (S + (c - 1) L) / c.
- Sent at r requests a second: all have arrived after n / r, to which vLLM's client scales its
  Poisson or gamma intervals (other clients are within six standard deviations of it). What waits
  then is at most the whole closed loop: its bound, after that time.
- Where each start is known, D is also at most the time from the first start to the last end.

The client's clock runs while it makes its tasks and joins them: `IDLE_S` and `IDLE_EACH_S` are
added to each upper bound.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

from harness.results.bench import BenchFile
from harness.results.ranges import percentile, statistics_of

RECOMPUTED = 1e-6
"""Relative difference of what is computed anew from decimal numbers."""
IDLE_S = 2.0
"""Seconds that a client may spend with no request in flight, in all."""
IDLE_EACH_S = 1e-3
"""And more for each request: a busy client sends a thousand a second."""
GAPS_S = 0.1
"""How far the gaps between a request's chunks may miss its time from first token to last: a client
may also wait for the end of the stream."""
WINDOW_S = 1.0
"""The kit's own clock reads a wall that may be corrected meanwhile."""


def contradictions(bench: BenchFile) -> Iterator[str]:
    """Yield times that cannot all be true. Arrays have their lengths, numbers their ranges."""
    yield from _throughput(bench)
    yield from _statistics(bench)
    yield from _requests(bench)
    yield from _duration(bench)


def outside(duration_s: float, window_s: float | None) -> Iterator[str]:
    """Yield a sentence where a wave took longer than the kit's own clock saw (seconds)."""
    if window_s is not None and not duration_s <= window_s + WINDOW_S:
        yield f"a duration of {duration_s:.6g} s within {window_s:.6g} s by the kit's own clock"


def _statistics(bench: BenchFile) -> Iterator[str]:
    found = {
        where: (key, value)
        for where, (key, value) in statistics_of(bench).items()
        if isinstance(value, int | float)
    }
    for (kind, latency), (key, value) in found.items():
        if value > 1e3 * bench.duration * (1 + RECOMPUTED):
            yield f"{key} {value:.6g} is longer than the duration, {bench.duration:.6g} s"
        whole = found.get((kind, "e2el")) if kind != "std" and latency == "ttft" else None
        if whole is not None and value > whole[1] * (1 + RECOMPUTED):
            yield f"{key} {value:.6g} is above {whole[0]} {whole[1]:.6g}, which includes it"
    for latency in sorted({latency for _, latency in found}):
        ranked = sorted(
            (rank, key, value)
            for (kind, of), (key, value) in found.items()
            if of == latency and (rank := percentile(kind)) is not None
        )
        for (_, low, less), (_, high, more) in itertools.pairwise(ranked):
            if less > more * (1 + RECOMPUTED):
                yield f"{low} {less:.6g} is above {high} {more:.6g}"


def _requests(bench: BenchFile) -> Iterator[str]:
    """Yield, for each kind of contradiction within a request, the first one."""
    if bench.ttfts is None or bench.itls is None or bench.output_lens is None:
        return
    rows = bench.succeeded
    latencies: tuple[float | None, ...] = bench.latencies or (None,) * len(rows)
    kinds: dict[str, str] = {}
    for row, latency in zip(rows, latencies, strict=True):
        ttft, gaps, tokens = bench.ttfts[row], bench.itls[row], bench.output_lens[row]
        if ttft == 0:
            kinds.setdefault("zero", f"request {row} has its first token after 0 s")
        if len(gaps) > tokens:
            kinds.setdefault(
                "gaps", f"request {row} has {len(gaps)} gaps between {tokens} output tokens"
            )
        if latency is None:
            continue
        rest = latency - ttft
        if rest < -RECOMPUTED * latency:
            kinds.setdefault(
                "order", f"request {row} ends after {latency:.6g} s, before its first token "
                f"({ttft:.6g} s)"
            )  # fmt: skip
        elif not math.isclose(sum(gaps), rest, rel_tol=0.01, abs_tol=GAPS_S):
            kinds.setdefault(
                "sum", f"the gaps of request {row} sum to {sum(gaps):.6g} s, but its last token is "
                f"{rest:.6g} s after its first"
            )  # fmt: skip
    yield from kinds.values()


def _duration(bench: BenchFile) -> Iterator[str]:
    known = _known_latencies(bench)
    if known is None:
        return
    total, longest, most = known
    in_flight = min(bench.max_concurrency or bench.num_prompts, bench.num_prompts)
    duration, room = bench.duration, 1 + RECOMPUTED
    least = max(longest, total / in_flight)
    arrived = _arrival(bench, latest=False)
    if duration * room < max(least, arrived or 0.0):
        yield (
            f"a duration of {duration:.6g} s, but its requests take at least "
            f"{max(least, arrived or 0.0):.6g} s, {in_flight} at once"
        )
    arrived = _arrival(bench, latest=True)
    idle = IDLE_S + IDLE_EACH_S * bench.num_prompts
    if arrived is not None:
        bound = arrived + (total + (in_flight - 1) * most) / in_flight + idle
        if duration > bound * room:
            yield (
                f"a duration of {duration:.6g} s, but its requests take at most {bound:.6g} s, "
                f"{in_flight} at once"
            )
    if bench.start_times and bench.latencies:
        starts = [bench.start_times[row] for row in bench.succeeded]
        ends = [begin + took for begin, took in zip(starts, bench.latencies, strict=True)]
        span = max(ends) - min(starts)
        if not span / room <= duration + RECOMPUTED or duration > (span + idle) * room + (
            arrived or 0.0
        ):
            yield (
                f"a duration of {duration:.6g} s, but {span:.6g} s between the first start and "
                "the last end of its requests"
            )


def _known_latencies(bench: BenchFile) -> tuple[float, float, float] | None:
    """Return the latencies' sum, what the longest is at least, and at most, in seconds."""
    if bench.latencies:
        longest = max(bench.latencies)
        return sum(bench.latencies), longest, longest
    _, mean = statistics_of(bench).get(("mean", "e2el"), ("", None))
    if not isinstance(mean, int | float):
        return None
    total = bench.completed * mean / 1e3
    return total, mean / 1e3, total


def _arrival(bench: BenchFile, *, latest: bool) -> float | None:
    """Return after how many seconds all requests were due, at the latest or earliest.

    None where it is not known: no rate was written, or one that rises.
    """
    rate, count = bench.rate, bench.num_prompts
    if rate is None or any(key.startswith("ramp_up") for key in bench.other_numbers):
        return None
    if math.isinf(rate):
        return 0.0
    deviation = 6 / math.sqrt(count * (bench.burstiness or 1.0))
    factor = 1 + deviation if latest else max(0.0, 1 - deviation)
    return factor * (count if latest else count - 1) / rate


def _throughput(bench: BenchFile) -> Iterator[str]:
    """Yield a sentence where more tokens came than the time of each token allows."""
    if len(set(bench.output_lens or ())) > 1:
        return  # the mean over requests weighs short ones as much as long ones
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
