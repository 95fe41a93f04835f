"""Statistics that a result states, computed anew from its own arrays."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from harness.results.bench import BenchFile
from harness.results.ranges import percentile, statistics_of
from harness.results.times import RECOMPUTED


def differences(bench: BenchFile) -> Iterator[str]:
    """Yield statistics that differ from the arrays they were computed from."""
    arrays = _arrays(bench)
    for (kind, latency), (key, stated) in statistics_of(bench).items():
        values = arrays.get(latency)
        if not values or not isinstance(stated, int | float):
            continue
        found = 1e3 * _statistic(kind, values)
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
            return float(np.percentile(values, percentile(kind) or 0.0))
