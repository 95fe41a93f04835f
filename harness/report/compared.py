"""The sections that set a run beside the publication: verdicts, wave residuals, what is open."""

from __future__ import annotations

from harness.document import DASH, Block, Bullets, Line, Paragraph, Section, Table
from harness.report.tables import linked, number, ratio
from harness.results.collect import Results
from harness.results.verdict import Judgement, independent
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
            # A quotient of what cannot be compared would look like a result.
            f"{each.ratio:.2f}" if each.ratio is not None and not each.differences else DASH,
            each.verdict,
            _why(each, shared),
        )
        for each in judged
    )
    header = ("claim", "published", "measured", "ratio", "verdict", "why")
    blocks: list[Block] = [Paragraph(headline(judged))]
    if shared:
        blocks.append(Paragraph("What differs for all that is not comparable:"))
        blocks.append(Bullets(tuple(shared)))
    return Section("Published against measured", (*blocks, Table(header, rows)))


def _shared_differences(judged: list[Judgement]) -> list[str]:
    """Return the differences that every incomparable claim has, to be said once."""
    differing = [each.differences for each in judged if each.differences]
    if not differing:
        return []
    return [each for each in differing[0] if all(each in others for others in differing)]


def _why(each: Judgement, shared: list[str]) -> str:
    if not each.differences:
        return each.why
    own = [difference for difference in each.differences if difference not in shared]
    return "; ".join(["as above", *own] if shared else own)


def residuals(results: Results) -> Section | None:
    """Return the start and tail of each decode row, published and measured.

    With requests of one length, concurrency x output / throughput is the time of one wave, and
    (output - 1) x TPOT what decoding takes of it; the rest is prefill, ramp and drain. It tells how
    many waves a published number averages over.
    """
    reference = results.reference
    if reference is None:
        return None
    rows = []
    for there, workload in reference.published_workloads.items():
        name = reference.workloads.get(there, there)
        ours = results.plan.workloads.get(name)
        recipe = reference.recipes.get("vllm", "vllm")
        if (
            workload.output_len == 1
            or ours is None
            or workload.concurrency is None
            or ours.concurrency is None
        ):
            continue
        published = _residual(
            workload.concurrency,
            workload.output_len,
            reference.published.value("vllm", there, "output_throughput"),
            reference.published.value("vllm", there, "mean_tpot_ms"),
        )
        measured = _residual(
            ours.concurrency,
            ours.output_len,
            results.value(recipe, name, "output_throughput"),
            results.value(recipe, name, "mean_tpot_ms"),
        )
        rows.append(
            (
                workload.label,
                f"{workload.concurrency:,}",
                _seconds(published),
                f"{ours.concurrency:,}",
                _seconds(measured),
            )
        )
    if not rows:
        return None
    header = ("In → Out", "published load", "start and tail", "load here", "start and tail")
    text = (
        "Concurrency × output ÷ throughput − (output − 1) × TPOT: the part of a wave that is not "
        "steady decoding."
    )
    return Section("Start and tail of a wave", (Paragraph(text), Table(header, tuple(rows))))


def not_stated(results: Results) -> Section | None:
    """Return what the publication leaves open, and what the published suite takes instead."""
    if results.reference is None or not results.reference.published.not_stated:
        return None
    rows = tuple(
        (each.what, each.ours, each.why) for each in results.reference.published.not_stated
    )
    header = ("what", "in the published suite", "why")
    return Section("What the publication does not state", (Table(header, rows),))


def printed(claim: Claim) -> str:
    """Write a claim's number with its unit, in the precision that it was printed with."""
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


def _residual(
    concurrency: int, output_len: int, throughput: float | None, tpot_ms: float | None
) -> float | None:
    if not throughput or tpot_ms is None:
        return None
    return concurrency * output_len / throughput - (output_len - 1) * tpot_ms / 1e3


def _seconds(value: float | None) -> str:
    return DASH if value is None else f"{value:.1f} s"
