"""The publication's tables, filled with numbers written as the publication writes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from harness.document import DASH, Line, Link, Table, prose
from harness.metrics import METRICS
from harness.suite.model import Column, Row, Workload
from harness.suite.model import Table as WantedTable
from harness.suite.published import PublishedFile, TextTable


class Numbers(Protocol):
    """Where the numbers of a table come from: a run, or the publication itself."""

    def value(self, recipe: str, workload: str, metric: str) -> float | None:
        """Return one number; None where there is none."""
        ...

    def quotient(self, above: str, below: str, workload: str, metric: str) -> float | None:
        """Return one recipe's number divided by another's."""
        ...

    def file(self, recipe: str, workload: str) -> str | None:
        """Return the raw file that a number comes from; None if it comes from none."""
        ...

    def why_missing(self, recipe: str, workload: str, metric: str) -> list[str]:
        """Return why there is no number."""
        ...


@dataclass(frozen=True)
class Published:
    """The publication's own numbers; quotients as printed, not computed."""

    file_: PublishedFile

    def value(self, recipe: str, workload: str, metric: str) -> float | None:
        return self.file_.value(recipe, workload, metric)

    def quotient(self, above: str, below: str, workload: str, metric: str) -> float | None:
        return self.file_.value((above, below), workload, metric)

    def file(self, recipe: str, workload: str) -> str | None:  # noqa: ARG002 - nothing measured
        return None

    def why_missing(self, recipe: str, workload: str, metric: str) -> list[str]:  # noqa: ARG002
        return [f"{recipe}/{workload}: not published"]


@dataclass(frozen=True)
class Filled:
    """A table, and why some of its cells are dashes."""

    table: Table
    missing: tuple[str, ...]


def number(value: float, metric: str) -> str:
    """Write a metric as the publication does: ``54,985`` tokens per second, ``28.8 ms``."""
    return METRICS[metric].write(value)


def ratio(value: float) -> str:
    """Write a quotient as the publication does: ``2.0×``."""
    return f"{value:.1f}×"


def linked(text: str, file: str | None) -> Line:
    """Return a number, linked to the raw file that it comes from if there is one."""
    return text if file is None else Link(text, file)


def without_links(table: Table) -> Table:
    """Return the same table for a place where its links would not resolve."""

    def plain(cell: Line) -> Line:
        if isinstance(cell, tuple):
            return tuple(each.text if isinstance(each, Link) else each for each in cell)
        return cell.text if isinstance(cell, Link) else cell

    return replace(table, rows=tuple(tuple(map(plain, row)) for row in table.rows))


def text_table(wanted: TextTable) -> Table:
    """Return a table of words."""
    return Table(wanted.header, tuple(tuple(map(prose, row)) for row in wanted.rows))


def fill(wanted: WantedTable, workloads: Mapping[str, Workload], numbers: Numbers) -> Filled:
    """Fill ``wanted``; what is missing becomes a dash with its reason."""
    missing: dict[str, None] = {}
    rows = []
    for row in wanted.rows:
        cells = []
        for column in wanted.columns:
            cell, reasons = _cell(column, row, workloads[row.workload], numbers)
            cells.append(cell)
            missing.update(dict.fromkeys(reasons))
        rows.append(tuple(cells))
    header = tuple(column.title for column in wanted.columns)
    return Filled(Table(header, tuple(rows)), tuple(missing))


def _cell(column: Column, row: Row, workload: Workload, numbers: Numbers) -> tuple[Line, list[str]]:
    if column.show == "shape":
        return row.label or workload.label, []
    if column.show == "concurrency":
        return workload.sent, []
    metric = column.metric or row.metric
    assert metric is not None, "the schema gives every cell a metric"
    if column.ratio:
        found = numbers.quotient(*column.ratio, row.workload, metric)
        if found is not None:
            return ratio(found), []
        return DASH, [
            why
            for recipe in column.ratio
            for why in numbers.why_missing(recipe, row.workload, metric)
        ]
    assert column.recipe is not None, "the schema gives every column one source"
    value = numbers.value(column.recipe, row.workload, metric)
    if value is None:
        return DASH, numbers.why_missing(column.recipe, row.workload, metric)
    return linked(number(value, metric), numbers.file(column.recipe, row.workload)), []
