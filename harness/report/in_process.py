"""What must be said about engines without a server: how they were driven, and what that costs."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from harness.document import DASH, Block, Line, Link, Paragraph, Section, Table
from harness.engines.registry import ENGINES, engine_of
from harness.report.tables import number
from harness.results.collect import CellResult, Results
from harness.suite.plan import Session

RATE = "output_throughput"


def driving(results: Results) -> Section | None:
    """Return the two drive modes of one engine side by side, if a run has both.

    How much of a published gap is due to the drive mode is then a measured number.
    """
    blocks: list[Block] = []
    for name, sessions in results.plan.by_engine.items():
        engine = ENGINES[name]
        for one, other in itertools.combinations(engine.settings.drives, 2):
            if rows := tuple(_driven(results, sessions, one, other)):
                header = ("engine, workload", one, "wave", "steps", other, "wave", "steps")
                blocks += [Paragraph(engine.driving), Table(header, rows)]
    return Section("Two drive modes", tuple(blocks)) if blocks else None


def _driven(
    results: Results, sessions: Sequence[Session], one: str, other: str
) -> Iterator[tuple[Line, ...]]:
    """Yield the cells that two of ``sessions`` measured, if only their drive modes differ."""
    for first, second in itertools.permutations(sessions, 2):
        same = (first.image, first.args, first.env) == (second.image, second.args, second.env)
        if not same or (first.drive, second.drive) != (one, other):
            continue
        for workload in dict.fromkeys(cell.workload for cell in second.cells):
            found = [_first(results, each.recipe, workload) for each in (first, second)]
            cells = [each for each in found if each is not None]
            if len(cells) == len(found):
                yield (f"{first.recipe}, {workload}", *_cells(cells[0]), *_cells(cells[1]))


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
        "acceptance length",
        "preempted",
    )
    return Section("Ranks of in-process engines", (Table(header, tuple(rows)),))


def notes(results: Results) -> Iterator[Line]:
    """Yield what engines say must be known before a number is quoted, each note once."""
    found = (note for each in results.plan.sessions for note in engine_of(each).notes(each))
    yield from dict.fromkeys(found)
