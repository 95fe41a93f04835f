"""The sections that compare a run with the publication: verdicts, wave residuals, open points."""

from __future__ import annotations

import itertools
from typing import Protocol

from harness.document import DASH, Block, Bullets, Line, Paragraph, Section, Table
from harness.report.tables import linked, number, ratio
from harness.results.collect import Results
from harness.results.verdict import Judgement, independent
from harness.suite.model import Workload
from harness.suite.published import Claim


def headline(judged: list[Judgement]) -> str:
    """Return one sentence: how many published measurements got which verdict.

    Measurements are counted once, however many claims repeat them.
    """
    counts = independent(judged)
    parts = [f"{count} {verdict}" for verdict, count in counts.items()]
    return f"Of {sum(counts.values())} published measurements: {', '.join(parts)}."


def verdicts(judged: list[Judgement]) -> Section | None:
    """Return the table of all claims, in the publication's order."""
    if not judged:
        return None
    shared = _shared_differences(judged)
    rows = tuple(
        (
            each.claim.where,
            printed(each.claim),
            _measured(each),
            # A quotient of numbers that cannot be compared would look like a result.
            f"{each.ratio:.2f}" if each.ratio is not None and not each.differences else DASH,
            each.verdict,
            _why(each, shared),
        )
        for each in judged
    )
    header = ("claim", "published", "measured", "ratio", "verdict", "why")
    blocks: list[Block] = [Paragraph(headline(judged))]
    if shared:
        blocks.append(Paragraph("Every claim that is not comparable differs in:"))
        blocks.append(Bullets(tuple(shared)))
    return Section("Published and measured", (*blocks, Table(header, rows)))


def _shared_differences(judged: list[Judgement]) -> list[str]:
    """Return the differences that all incomparable claims share, to be stated once."""
    differing = [each.differences for each in judged if each.differences]
    if not differing:
        return []
    return [each for each in differing[0] if all(each in others for others in differing)]


def _why(each: Judgement, shared: list[str]) -> str:
    if not each.differences:
        return each.why
    own = [difference for difference in each.differences if difference not in shared]
    return "; ".join(["as above", *own] if shared else own)


class Values(Protocol):
    """Numbers of cells: those of a run, or those that were published."""

    def value(self, recipe: str, workload: str, metric: str) -> float | None:
        """Return one number; None where there is none."""
        ...


def residuals(results: Results) -> Section | None:
    """Return the start and tail of each decode row, published and measured.

    With requests of one length, concurrency x output / throughput is the time of one wave, and
    (output - 1) x TPOT is its decoding; the rest is prefill, ramp and drain. It shows how many
    waves a published number averages over.
    """
    reference = results.reference
    if reference is None:
        return None
    recipes = [
        recipe
        for recipe in reference.published_recipes
        if any(
            reference.published.value(recipe, each, "mean_tpot_ms") is not None
            for each in reference.published_workloads
        )
    ]
    rows = []
    for recipe, there in itertools.product(recipes, reference.published_workloads):
        workload = reference.published_workloads[there]
        name = reference.workloads.get(there, there)
        ours = results.plan.workloads.get(name)
        if workload.output_len == 1 or ours is None:
            continue
        published = _residual(reference.published, recipe, there, workload)
        measured = _residual(results, reference.recipes.get(recipe, recipe), name, ours)
        label = workload.label if len(recipes) == 1 else f"{recipe}, {workload.label}"
        rows.append((label, workload.sent, _seconds(published), ours.sent, _seconds(measured)))
    if not rows:
        return None
    header = (
        "In → Out",
        "published concurrency",
        "start and tail",
        "concurrency in this run",
        "start and tail",
    )
    text = (
        "Concurrency × output ÷ throughput − (output − 1) × TPOT: the part of a wave that is not "
        "steady decoding."
    )
    return Section("Start and tail of a wave", (Paragraph(text), Table(header, tuple(rows))))


def not_stated(results: Results) -> Section | None:
    """Return what the publication leaves open, and what the published suite does instead."""
    if results.reference is None or not results.reference.published.not_stated:
        return None
    rows = tuple(
        (each.what, each.ours, each.why) for each in results.reference.published.not_stated
    )
    header = ("what", "in the published suite", "why")
    return Section("What the publication does not state", (Table(header, rows),))


def printed(claim: Claim) -> str:
    """Write a claim's number with its unit, to the precision that it was printed with."""
    if claim.kind == "text":
        return claim.text or ""
    numbers = [value for value in (claim.value, claim.low, claim.high) if value is not None]
    text = "–".join(_plain(value, claim.precision or 1) for value in numbers)
    about = "about " if claim.kind == "approximate" else ""
    gap = "" if claim.unit in ("×", "%") else " "
    return f"{about}{text}{gap}{claim.unit or ''}"


def _plain(value: float, precision: float) -> str:
    decimals = max(0, len(f"{precision:g}".partition(".")[2]))
    return f"{value:,.{decimals}f}"


def _measured(each: Judgement) -> Line:
    by = each.claim.measured_by
    if each.measured is None or by is None:
        return DASH
    if by.ratio:
        return ratio(each.measured)
    return linked(number(each.measured, by.metric), each.file)


def _residual(numbers: Values, recipe: str, name: str, workload: Workload) -> float | None:
    throughput = numbers.value(recipe, name, "output_throughput")
    tpot_ms = numbers.value(recipe, name, "mean_tpot_ms")
    if not throughput or tpot_ms is None or workload.concurrency is None:
        return None
    output_len = workload.output_len
    return workload.concurrency * output_len / throughput - (output_len - 1) * tpot_ms / 1e3


def _seconds(value: float | None) -> str:
    return DASH if value is None else f"{value:.1f} s"
