"""One cell's numbers, the same for every engine; `harness.metrics` defines each of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.metrics import METRICS, Metric, Wave
from harness.results.batch_record import contradictions, read_batch_record
from harness.results.bench import BenchFile


@dataclass(frozen=True, kw_only=True)
class RankShare:
    """What one rank of an in-process engine served, in tokens per second of its own time."""

    rank: int
    requests: int
    output_throughput: float
    preempted: int
    engine_steps: int | None
    """Steps of the engine in the wave, prefill and decode; None where it does not count them."""


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """What one wave yielded, each number in its metric's unit."""

    duration_s: float
    completed: int
    failed: int
    input_lens: tuple[int, ...]
    output_lens: tuple[int, ...]
    numbers: Mapping[str, float]
    """Metric -> value; a metric that does not apply is not in it."""
    acceptance_length: float | None = None
    """Tokens per decoding step with drafts: 1 + accepted / steps; None without them."""
    ids_sha256: str | None = None
    """Hash of the prompts' file as an in-process engine read it."""
    ranks: tuple[RankShare, ...] = ()
    contradictions: tuple[str, ...] = ()
    """What cannot be true of the record of an in-process engine: then no number of it is."""

    def metric(self, name: str) -> float | None:
        """Return one metric by the name that suites use; None where it does not apply."""
        return self.numbers.get(name)


def from_bench(bench: BenchFile) -> Measurement:
    """Take the numbers of a result that was written with ``--save-detailed``."""
    return Measurement(
        duration_s=bench.duration,
        completed=bench.completed,
        failed=bench.failed or 0,
        input_lens=bench.input_lens or (),
        output_lens=bench.output_lens or (),
        numbers=_numbers(lambda metric: metric.from_client(bench.numbers)),
    )


def _numbers(read: Callable[[Metric], float | None]) -> dict[str, float]:
    """Return every metric that ``read`` finds a value for; none where they cannot be computed.

    A wave of no duration has no rate: what is wrong with it is for its rules to say.
    """
    try:
        return {name: value for name in METRICS.names if (value := read(METRICS[name])) is not None}
    except ArithmeticError:
        return {}


def read_batch(path: Path) -> Measurement:
    """Compute a measurement from what the ranks of an in-process engine recorded.

    The wave lasts from the first start to the last token on any rank; where tokens have no
    timestamps, to the last rank's return.

    Raises:
        UsageError: ``path`` is not such a file.
    """
    batch = read_batch_record(path)
    requests = sorted(batch.requests, key=lambda each: each.index)
    stamped = [
        (each, each.first_token_s, each.last_token_s)
        for each in requests
        if each.first_token_s is not None and each.last_token_s is not None
    ]
    all_stamped = len(stamped) == len(requests)
    latencies = {
        "ttft": [first - each.start_s for each, first, _ in stamped],
        "e2el": [last - each.start_s for each, _, last in stamped],
        "tpot": [
            (last - first) / (each.output_tokens - 1)
            for each, first, last in stamped
            if each.output_tokens > 1
        ],
    }
    began = min(each.start_s for each in requests)
    ended = max(last for _, _, last in stamped) if all_stamped else batch.duration_s
    wave = Wave(
        duration_s=ended - began,
        input_tokens=sum(each.prompt_tokens for each in requests),
        output_tokens=sum(each.output_tokens for each in requests),
        latencies=latencies if all_stamped else {},
        drafted=sum(each.drafted for each in requests),
        accepted=sum(each.accepted for each in requests),
    )
    steps = sum(each.drafting_steps for each in requests)
    return Measurement(
        duration_s=wave.duration_s,
        completed=len(requests),
        failed=0,
        input_lens=tuple(each.prompt_tokens for each in requests),
        output_lens=tuple(each.output_tokens for each in requests),
        numbers=_numbers(lambda metric: metric.from_wave(wave)),
        acceptance_length=1 + wave.accepted / steps if steps else None,
        ids_sha256=batch.ids_sha256,
        ranks=tuple(
            RankShare(
                rank=each.rank,
                requests=each.requests,
                output_throughput=each.output_tokens / (each.end_s - each.start_s),
                preempted=each.preempted,
                engine_steps=each.engine_steps,
            )
            for each in batch.ranks
            if each.end_s > each.start_s
        ),
        contradictions=tuple(contradictions(batch)),
    )
