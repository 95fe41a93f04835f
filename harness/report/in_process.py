"""What must be said of engines without a server: how they were driven, and what that costs."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from harness.document import DASH, Code, Line, Link, Paragraph, Section, Table
from harness.engines.registry import engine_of
from harness.report.tables import number
from harness.results.collect import CellResult, Results
from harness.suite.plan import Session

RATE = "output_throughput"


def driving(results: Results) -> Section | None:
    """Return the two ways of driving one engine side by side, where a run has both.

    How much of a published gap is the way of driving is then a measured number.
    """
    rows = []
    for called, stepped in _pairs(results.plan.sessions):
        workloads = [cell.workload for cell in stepped.cells]
        for workload in dict.fromkeys(workloads):
            ours, theirs = (
                _first(results, session.recipe, workload) for session in (stepped, called)
            )
            if ours is None or theirs is None:
                continue
            rows.append((f"{called.recipe}, {workload}", *_cells(theirs), *_cells(ours)))
    if not rows:
        return None
    header = ("engine, workload", "generate", "wave", "steps", "step", "wave", "steps")
    text = (
        Code("LLM.generate"),
        " is the call that the package offers; ",
        Code("step"),
        (
            " adds the same requests and steps the engine by hand, so that no decode steps pass "
            "before the first prefill. Output tok/s, seconds of the whole wave, and engine steps "
            "of one rank."
        ),
    )
    return Section("Two ways of driving", (Paragraph(text), Table(header, tuple(rows))))


def _pairs(sessions: tuple[Session, ...]) -> Iterator[tuple[Session, Session]]:
    """Yield sessions that differ in nothing but the way of driving: generate first, then step."""
    for called, stepped in itertools.permutations(sessions, 2):
        same = (called.image, called.args, called.env) == (stepped.image, stepped.args, stepped.env)
        if same and (called.drive, stepped.drive) == ("generate", "step"):
            yield called, stepped


def _first(results: Results, recipe: str, workload: str) -> CellResult | None:
    return next((each for each in results.of(recipe, workload) if each.measurement), None)


def _cells(each: CellResult) -> tuple[Line, ...]:
    found = each.measurement
    assert found is not None
    steps = found.ranks[0].engine_steps if found.ranks else None
    return (
        Link(
            number(found.numbers["output_throughput"], "output_throughput"),
            each.file or each.cell.folder,
        ),
        f"{found.duration_s:.1f} s",
        f"{steps:,}" if steps is not None else DASH,
    )


def ranks(results: Results) -> Section | None:
    """Return each cell that several ranks served: their spread, drafts and preemptions."""
    rows = []
    for each in results.cells:
        found = each.measurement
        if found is None or len(found.ranks) < 2:
            continue
        accepted = found.metric("acceptance_percent")
        rates = [share.output_throughput for share in found.ranks if share.requests]
        rows.append(
            (
                Link(each.cell.id, each.file or each.cell.folder),
                f"{len(rates)} of {len(found.ranks)}",
                " to ".join(number(rate, RATE) for rate in (min(rates), max(rates))),
                DASH if accepted is None else f"{accepted:.1f}%",
                DASH if found.acceptance_length is None else f"{found.acceptance_length:.2f}",
                f"{sum(share.preempted for share in found.ranks):,}",
            )
        )
    if not rows:
        return None
    header = (
        "cell",
        "ranks with work",
        "output tok/s of one rank",
        "accepted",
        "length",
        "preempted",
    )
    return Section("Ranks of in-process engines", (Table(header, tuple(rows)),))


def notes(results: Results) -> Iterator[Line]:
    """Yield what engines say must be known before a number is quoted, each note once."""
    found = (note for each in results.plan.sessions for note in engine_of(each).notes(each))
    yield from dict.fromkeys(found)
