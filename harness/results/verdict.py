"""First verdicts: what was measured next to what was published, and whether they are comparable.

A verdict is two-sided. One engine session gives no interval, so these are verdicts about a point;
they say "one session" wherever they appear.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from pydantic import JsonValue

from harness.metrics import Better
from harness.results.collect import Results
from harness.results.reference import Reference, conditions_of
from harness.suite.published import Claim, Condition

Verdict = Literal["within", "faster", "slower", "higher", "lower", "not comparable", "not run"]


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """One claim with what was measured for it, and why the verdict is what it is."""

    claim: Claim
    verdict: Verdict
    measured: float | None
    ratio: float | None
    why: str
    differences: tuple[str, ...] = ()
    """Which conditions of the claim the run does not meet; `why` consists of them."""
    file: str | None = None
    """The first raw file behind the measured value."""


def judge(results: Results) -> list[Judgement]:
    """Judge every claim of the publication; none if the run is compared with nothing."""
    reference = results.reference
    if reference is None:
        return []
    return [_judge(claim, results, reference) for claim in reference.published.claims]


def independent(judged: list[Judgement]) -> dict[Verdict, int]:
    """Count verdicts of measurements, each once, however many claims repeat it."""
    counts: dict[Verdict, int] = {}
    for each in judged:
        if each.claim.same_as is None and each.claim.measured_by is not None:
            counts[each.verdict] = counts.get(each.verdict, 0) + 1
    return counts


def _judge(claim: Claim, results: Results, reference: Reference) -> Judgement:
    by = claim.measured_by
    if by is None:
        why = claim.not_measured or ""
        return Judgement(claim=claim, verdict="not run", measured=None, ratio=None, why=why)
    workload = reference.workloads.get(by.workload, by.workload)
    recipes = [reference.recipes.get(recipe, recipe) for recipe in by.recipes]
    value = (
        results.quotient(recipes[0], recipes[1], workload, by.metric)
        if len(recipes) == 2
        else results.value(recipes[0], workload, by.metric)
    )
    measured = value / by.per if value is not None else None
    differing = list(_differences(claim, results, reference, workload, recipes))
    if measured is None:
        missing = [
            why for name in recipes for why in results.why_missing(name, workload, by.metric)
        ]
        if differing and not any(results.of(name, workload) for name in recipes):
            missing = [f"this suite has no cell for it ({workload})"]
        why = "; ".join(dict.fromkeys(missing)) or "the engine does not report it"
        return Judgement(claim=claim, verdict="not run", measured=None, ratio=None, why=why)
    verdict: Verdict = "not comparable"
    why = "; ".join(differing)
    if not differing:
        verdict, why = _decide(claim, by.better, measured)
    return Judgement(
        claim=claim,
        verdict=verdict,
        measured=measured,
        ratio=measured / _middle(claim),
        why=why,
        differences=tuple(differing),
        file=results.file(recipes[0], workload),
    )


def _decide(claim: Claim, better: Better, measured: float) -> tuple[Verdict, str]:
    """Compare with the claim's band: its tolerance on either side of what may have been rounded."""
    low, high = band(claim)
    where = f"one session; {_figure(low)} to {_figure(high)} counts as the same"
    if low <= measured <= high:
        return "within", where
    above = measured > high
    names: dict[str, tuple[Verdict, Verdict]] = {
        "higher": ("faster", "slower"),
        "lower": ("slower", "faster"),
        "neither": ("higher", "lower"),
    }
    return names[better][0 if above else 1], where


def _figure(value: float) -> str:
    """Write a bound: four figures, and no exponent where a number is large."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def band(claim: Claim) -> tuple[float, float]:
    """Return the lowest and highest value that count as the same.

    The printed number stands for anything that rounds to it: 658K is 657.5K to 658.5K before the
    tolerance of measuring.
    """
    half = (claim.precision or 0.0) / 2
    low = claim.low if claim.low is not None else _middle(claim)
    high = claim.high if claim.high is not None else _middle(claim)
    return (low - half) * (1 - claim.tolerance), (high + half) * (1 + claim.tolerance)


def _middle(claim: Claim) -> float:
    if claim.value is not None:
        return claim.value
    assert claim.low is not None
    assert claim.high is not None
    return (claim.low + claim.high) / 2


def _differences(
    claim: Claim,
    results: Results,
    reference: Reference,
    workload: str,
    recipes: list[str],
) -> Iterator[str]:
    """Yield each condition that the claim asks for and the run does not meet, with both sides."""
    by = claim.measured_by
    assert by is not None
    asked = set(claim.must_equal)
    sessions = {session.recipe: session for session in results.plan.sessions}
    theirs = reference.published_workloads[by.workload]
    ours = results.plan.workloads.get(workload)
    hardware, gpus = reference.hardware, results.gpus
    prefix, here = hardware.gpu_name_prefix, ", ".join(sorted(set(gpus))) or "no GPU"

    def differs(condition: Condition, published: object, measured: object) -> Iterator[str]:
        if condition in asked and published != measured:
            yield f"{condition.replace('_', ' ')}: {published} published, {measured} in this run"

    if not gpus or not all(gpu.startswith(prefix) for gpu in gpus):
        yield from differs("gpu", prefix, here)
    yield from differs("gpu_count", hardware.gpu_count, len(gpus))
    for there, recipe in zip(by.recipes, recipes, strict=True):
        session = sessions.get(recipe)
        if session is None:
            continue
        published, measured = reference.published_recipes[there], conditions_of(session)
        yield from differs(
            "engine",
            f"{published.engine} ({published.image})",
            f"{measured.engine} ({measured.image})",
        )
        if published.speculation != measured.speculation:
            yield from differs(
                "speculation",
                _speculation(published.speculation),
                _speculation(measured.speculation),
            )
    if ours is not None:
        yield from differs("lengths", theirs.label, ours.label)
        yield from differs("concurrency", theirs.sent, ours.sent)


def _speculation(config: JsonValue) -> str:
    if not isinstance(config, dict):
        return "none"
    return f"{config.get('method')} with {config.get('num_speculative_tokens')}"
