"""The publication's tables, filled with what was measured; numbers written as it writes them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from harness.report.markdown import DASH, table
from harness.results.collect import Results
from harness.suite.model import Column, Metric, Row, Table

Link = Callable[[str, str], str]
"""Given a number as text and the raw file that it comes from, returns what stands in the cell."""


def plain(text: str, file: str) -> str:  # noqa: ARG001 - a `Link` that links nothing
    """Leave the number as it is."""
    return text


@dataclass(frozen=True)
class Filled:
    """A table as Markdown, and why some of its cells are dashes."""

    markdown: str
    missing: tuple[str, ...]


def number(value: float, metric: Metric) -> str:
    """Write a metric as the publication does: ``54,985`` tokens per second, ``28.8 ms``."""
    if metric.endswith("_ms"):
        return f"{value:,.1f} ms"
    # A CPU gives fractions of a token per second, which no published table has.
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def ratio(value: float) -> str:
    """Write a quotient as the publication does: ``2.0×``."""
    return f"{value:.1f}×"


def fill(wanted: Table, results: Results, link: Link = plain) -> Filled:
    """Fill ``wanted`` with the results; what is missing becomes a dash with its reason."""
    missing: dict[str, None] = {}
    rows = []
    for row in wanted.rows:
        cells = []
        for column in wanted.columns:
            text, reasons = _cell(column, row, results, link)
            cells.append(text)
            missing.update(dict.fromkeys(reasons))
        rows.append(cells)
    header = [column.title for column in wanted.columns]
    return Filled(table(header, rows), tuple(missing))


def _cell(column: Column, row: Row, results: Results, link: Link) -> tuple[str, list[str]]:
    workload = results.plan.workloads[row.workload]
    if column.show == "shape":
        return row.label or workload.label, []
    if column.show == "concurrency":
        return f"{workload.concurrency:,}", []
    metric = column.metric or row.metric
    assert metric is not None, "the schema gives every cell a metric"
    if column.ratio:
        above, below = (results.value(recipe, row.workload, metric) for recipe in column.ratio)
        if above is not None and below is not None:
            return ratio(above / below), []
        return DASH, [why for recipe in column.ratio for why in _missing(results, recipe, row)]
    assert column.recipe is not None, "the schema gives every column one source"
    value = results.value(column.recipe, row.workload, metric)
    if value is None:
        return DASH, _missing(results, column.recipe, row) or [
            f"{column.recipe}/{row.workload}: not applicable to one output token"
        ]
    file = next(each.file for each in results.of(column.recipe, row.workload) if each.measurement)
    return link(number(value, metric), file or ""), []


def _missing(results: Results, recipe: str, row: Row) -> list[str]:
    planned = results.of(recipe, row.workload)
    if not planned:
        return [f"{recipe}/{row.workload}: not part of this run"]
    return [
        f"{each.cell.id}: {each.status}, {'; '.join(each.reasons)}"
        for each in planned
        if each.status != "measured"
    ]
