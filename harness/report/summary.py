"""The answer first: what was measured, the publication's tables, and the cells without a number."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from harness.document import (
    DASH,
    Block,
    Code,
    Line,
    Link,
    Notice,
    Paragraph,
    Section,
    Strong,
    Table,
)
from harness.report.compared import headline
from harness.report.evidence import commit
from harness.report.tables import fill
from harness.results.collect import CellResult, Results
from harness.results.verdict import Judgement


def title(results: Results) -> str:
    """Return what was run, and whether all of it was measured."""
    return f"{results.plan.title}: {'measured' if results.complete else 'incomplete'}"


def head(results: Results, judged: list[Judgement]) -> Iterator[Block]:
    """Yield what comes under the title: how many cells have a number, where and when."""
    record, plan = results.record, results.plan
    if plan.notice:
        yield Notice(plan.notice)
    sessions = f"{len(plan.sessions)} engine sessions" if len(plan.sessions) > 1 else "one session"
    yield Paragraph(
        (
            Strong(f"{results.measured} of {len(results.cells)} cells measured"),
            f" in {sessions} on host ",
            Code(record.host),
            (
                f" ({record.host_summary}), {_day(record.began)}, "
                f"with kit {record.kit_version}{commit(record.kit_commit)}."
            ),
        )
    )
    if judged:
        yield Paragraph(headline(judged))
    yield Paragraph(
        (
            f"{plan.about} Each number below links to the file that it came from; ",
            Code("python -m harness report RUN_DIRECTORY"),
            " regenerates this page from those files.",
        )
    )


def tables(results: Results) -> Iterator[Section]:
    """Yield the publication's tables, filled with what was measured."""
    for wanted in results.plan.tables:
        filled = fill(wanted, results.plan.workloads, results)
        blocks: list[Block] = [filled.table]
        if wanted.note:
            blocks.append(Paragraph(wanted.note))
        if filled.missing:
            blocks.append(Paragraph(f"{DASH} not measured: {'; '.join(filled.missing)}."))
        yield Section(wanted.title, tuple(blocks))


def not_measured(results: Results) -> Section | None:
    """Return every cell without a number, and why it has none."""
    missing = [each for each in results.cells if each.status != "measured"]
    if not missing:
        return None
    rows = tuple((Code(each.cell.id), each.status, _why(each)) for each in missing)
    return Section("Cells without a number", (Table(("cell", "state", "why"), rows),))


def _why(each: CellResult) -> Line:
    """Return the reasons, with a link to the log that says more."""
    text = "; ".join(each.reasons)
    log = each.record.log if each.record else None
    return (f"{text} (", Link("log", log), ")") if log else text


def _day(moment: str) -> str:
    return datetime.fromisoformat(moment).strftime("%Y-%m-%d %H:%M UTC")
