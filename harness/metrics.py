"""Every metric that tables and claims can name, defined once.

Each has a name, a unit, the direction that is better, how it is read from either kind of result,
how it is written, and why it can be missing. Throughputs count a whole wave, from the first
request's start to the last token's arrival, ramp and tail included: that is what ``vllm bench
serve`` prints and publications quote. TTFT is the time from a request's start to its first token;
TPOT is (last - first token) / (tokens - 1) of one request; ITL the time between two tokens of one
request; E2EL a request's whole time. The mean, median or percentile is over requests (for ITL:
over all gaps).
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from pydantic import AfterValidator, WithJsonSchema

from harness.registry import Registry

Better = Literal["higher", "lower", "neither"]

LATENCIES = {
    "ttft": "TTFT",
    "tpot": "TPOT",
    "itl": "ITL",
    "e2el": "E2EL",
}
"""Latencies of a request, by the client's names, and as they are written."""

PERCENTILES = (50, 90, 99)
"""Percentiles that the client is asked for; interpolated linearly, as numpy does."""

ClientNumbers = Mapping[str, float]
"""The numbers at the top level of a client's result, by their keys there."""


@dataclass(frozen=True, kw_only=True)
class Wave:
    """What the ranks of an in-process engine recorded for one wave.

    Times in seconds. A latency has no values where the drive mode does not timestamp tokens.
    """

    duration_s: float
    input_tokens: int
    output_tokens: int
    latencies: Mapping[str, Sequence[float]]
    drafted: int
    accepted: int


@dataclass(frozen=True, kw_only=True)
class Metric:
    """One number of a cell."""

    name: str
    title: str
    """As a column heading."""
    unit: str
    better: Better
    write: Callable[[float], str]
    from_client: Callable[[ClientNumbers], float | None]
    from_wave: Callable[[Wave], float | None]
    why_missing: str
    """Why a measured cell can lack it."""


def rate(value: float) -> str:
    """Write tokens per second as publications do: ``54,985``."""
    # A CPU gives fractions of a token per second, which no published table has.
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def milliseconds(value: float) -> str:
    """Write a time: ``28.8 ms``."""
    return f"{value:,.1f} ms"


def percent(value: float) -> str:
    """Write a share: ``62%``."""
    return f"{value:.0f}%"


def _throughput(
    name: str, title: str, from_client: Callable[[ClientNumbers], float | None], *counts: str
) -> Metric:
    """Return the rate of the tokens that ``counts`` name: fields of `Wave`."""
    return Metric(
        name=name,
        title=title,
        unit="tok/s",
        better="higher",
        write=rate,
        from_client=from_client,
        from_wave=lambda wave: sum(getattr(wave, count) for count in counts) / wave.duration_s,
        why_missing="missing from its result",
    )


def _input_rate(numbers: ClientNumbers) -> float:
    """Return the input rate, which the client does not write."""
    return numbers["total_input_tokens"] / numbers["duration"]


THROUGHPUTS = (
    _throughput(
        "output_throughput",
        "output tok/s",
        lambda numbers: numbers.get("output_throughput"),
        "output_tokens",
    ),
    _throughput(
        "total_throughput",
        "total tok/s",
        lambda numbers: numbers.get("total_token_throughput"),
        *("input_tokens", "output_tokens"),
    ),
    _throughput("input_throughput", "input tok/s", _input_rate, "input_tokens"),
)


def _percentile(share: int, values: Sequence[float]) -> float:
    return float(np.percentile(values, share))


STATISTICS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "mean": lambda values: float(np.mean(values)),
    "median": lambda values: float(np.median(values)),
    **{f"p{share}": functools.partial(_percentile, share) for share in PERCENTILES},
}

NO_LATENCY = {
    "ttft": "not measured: this drive mode does not timestamp tokens",
    "tpot": "not applicable to one output token, or not measured without token timestamps",
    "itl": "not applicable to one output token, or not measured without every token's timestamp",
    "e2el": "not measured: this drive mode does not timestamp tokens",
}


def _latencies() -> Iterator[Metric]:
    for statistic, latency in itertools.product(STATISTICS, LATENCIES):
        name = f"{statistic}_{latency}_ms"
        yield Metric(
            name=name,
            title=f"{statistic} {LATENCIES[latency]}",
            unit="ms",
            better="lower",
            write=milliseconds,
            from_client=_from_client(name, between_tokens=latency in ("tpot", "itl")),
            from_wave=_from_wave(statistic, latency),
            why_missing=NO_LATENCY[latency],
        )


def _from_client(name: str, *, between_tokens: bool) -> Callable[[ClientNumbers], float | None]:
    def read(numbers: ClientNumbers) -> float | None:
        # Where requests have one output token, the client writes zeros, which mean nothing.
        if between_tokens and numbers["total_output_tokens"] <= numbers["completed"]:
            return None
        return numbers.get(name)

    return read


def _from_wave(statistic: str, latency: str) -> Callable[[Wave], float | None]:
    def compute(wave: Wave) -> float | None:
        values = wave.latencies.get(latency)
        return 1e3 * STATISTICS[statistic](values) if values else None

    return compute


ACCEPTANCE = Metric(
    name="acceptance_percent",
    title="accepted drafts",
    unit="%",
    better="neither",
    write=percent,
    from_client=lambda numbers: numbers.get("spec_decode_acceptance_rate"),
    from_wave=lambda wave: 100 * wave.accepted / wave.drafted if wave.drafted else None,
    why_missing="nothing was drafted, or the engine does not report it",
)

METRICS = Registry("metric", [*THROUGHPUTS, *_latencies(), ACCEPTANCE])
"""All metrics, by name; add yours here, or with `Registry.add`."""

MetricName = Annotated[
    str,
    AfterValidator(METRICS.checked),
    WithJsonSchema({"type": "string", "enum": list(METRICS.names)}),
]
"""A metric's name in a suite, a recipe or a claim."""
