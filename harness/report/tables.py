"""The publication's tables, filled with numbers that are written as it writes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from harness.metrics import METRICS
from harness.report.markdown import DASH, table
from harness.suite.model import Column, Row, Table, Workload
from harness.suite.published import PublishedFile, TextTable

Link = Callable[[str, str], str]
"""Given a number as text and the raw file that it comes from, returns what stands in the cell."""


def plain(text: str, file: str) -> str:  # noqa: ARG001 - a `Link` that links nothing
    """Leave the number as it is."""
    return text


class Numbers(Protocol):
    """Where the numbers of a table come from: a run, or the publication itself."""

    def value(self, recipe: str, workload: str, metric: str) -> float | None:
        """Return one number; None where there is none."""
        ...

    def quotient(self, above: str, below: str, workload: str, metric: str) -> float | None:
        """Return one recipe's number divided by another's."""
        ...

    def file(self, recipe: str, workload: str) -> str | None:
        """Return the raw file that a number comes from."""
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
    """A table as Markdown, and why some of its cells are dashes."""

    markdown: str
    missing: tuple[str, ...]


def number(value: float, metric: str) -> str:
    """Write a metric as the publication does: ``54,985`` tokens per second, ``28.8 ms``."""
    return METRICS[metric].write(value)


def ratio(value: float) -> str:
    """Write a quotient as the publication does: ``2.0×``."""
    return f"{value:.1f}×"


def text_table(wanted: TextTable) -> str:
    """Return a table of words."""
    return table(wanted.header, wanted.rows)


def fill(
    wanted: Table, workloads: Mapping[str, Workload], numbers: Numbers, link: Link = plain
) -> Filled:
    """Fill ``wanted``; what is missing becomes a dash with its reason."""
    missing: dict[str, None] = {}
    rows = []
    for row in wanted.rows:
        cells = []
        for column in wanted.columns:
            text, reasons = _cell(column, row, workloads[row.workload], numbers, link)
            cells.append(text)
            missing.update(dict.fromkeys(reasons))
        rows.append(cells)
    header = [column.title for column in wanted.columns]
    return Filled(table(header, rows), tuple(missing))


def _cell(
    column: Column, row: Row, workload: Workload, numbers: Numbers, link: Link
) -> tuple[str, list[str]]:
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
    return link(number(value, metric), numbers.file(column.recipe, row.workload) or ""), []
