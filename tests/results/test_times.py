"""No wave that a client can really run breaks the bounds of its times."""

from __future__ import annotations

import heapq
import itertools
import random

import pytest

from harness.results.bench import BenchFile
from harness.results.times import contradictions
from harness.results.totals import contradictions as of_totals


def wave(seed: int, *, detailed: bool) -> BenchFile:
    """Run a made-up client: a closed loop, or arrivals at a rate, at most so many in flight."""
    chance = random.Random(seed)
    count = chance.choice([1, 2, 5, 40, 300])
    concurrency = chance.choice([None, *(each for each in (1, 2, 7, 256) if each <= count)])
    rate = chance.choice([None, None, 0.5, 20.0])
    burstiness = chance.choice([0.3, 1.0, 5.0])
    due = [0.0] * count
    if rate is not None:
        gaps = [chance.gammavariate(burstiness, 1 / (rate * burstiness)) for _ in range(count)]
        due = list(itertools.accumulate(gaps))
        # As the client does: the last one is due after count / rate seconds.
        due = [each * count / rate / due[-1] for each in due]
    latencies = [chance.choice([0.05, 1.0, 30.0]) * chance.uniform(0.5, 1.5) for _ in range(count)]
    free, starts = [0.0] * (concurrency or count), []
    for arrives, latency in zip(due, latencies, strict=True):
        starts.append(max(arrives, heapq.heappop(free)))
        heapq.heappush(free, starts[-1] + latency)
    ends = [start + latency for start, latency in zip(starts, latencies, strict=True)]
    duration = max(ends) + chance.uniform(0.0, 1.0)
    ttfts = [latency * chance.uniform(0.1, 0.9) for latency in latencies]
    rests = [latency - ttft for latency, ttft in zip(latencies, ttfts, strict=True)]
    arrays: dict[str, object] = {
        "latencies": latencies,
        "ttfts": ttfts,
        "itls": [[rest / 2, rest / 2] for rest in rests],
        "start_times": [100.0 + start for start in starts],
        "input_lens": [8] * count,
        "output_lens": [5] * count,
        "errors": [""] * count,
    }
    return BenchFile.model_validate(
        {
            "model_id": "tiny",
            "num_prompts": count,
            "max_concurrency": concurrency,
            "request_rate": rate or "inf",
            "burstiness": burstiness,
            "duration": duration,
            "completed": count,
            "failed": 0,
            "total_input_tokens": 8 * count,
            "total_output_tokens": 5 * count,
            "request_throughput": count / duration,
            "output_throughput": 5 * count / duration,
            "total_token_throughput": 13 * count / duration,
            "mean_ttft_ms": 1e3 * sum(ttfts) / count,
            "mean_tpot_ms": 1e3 * sum(rests) / 4 / count,
            "mean_e2el_ms": 1e3 * sum(latencies) / count,
            **(arrays if detailed else {}),
        }
    )


@pytest.mark.parametrize("detailed", [True, False])
def test_what_a_client_can_run_is_never_broken(*, detailed: bool) -> None:
    for seed in range(400):
        bench = wave(seed, detailed=detailed)
        assert [*contradictions(bench), *of_totals(bench)] == [], seed


def test_a_duration_that_is_not_the_waves_is_found() -> None:
    for seed in range(400):
        bench = wave(seed, detailed=True)
        durations = [0.9 * max(bench.latencies or ())]
        if bench.request_rate == "inf":  # a few arrivals can be almost any time apart
            durations.append(4 * bench.duration + 10)
        for duration in durations:
            changed = bench.model_copy(update={"duration": duration})
            assert any("a duration of" in each for each in contradictions(changed)), seed


def test_a_rising_rate_has_no_upper_bound() -> None:
    bench = wave(1, detailed=False)
    slow = bench.model_copy(update={"duration": 1e4})
    assert any("at most" in each for each in contradictions(slow))
    rising = BenchFile.model_validate({**slow.model_dump(), "ramp_up_strategy": "linear"})
    assert list(contradictions(rising)) == []
