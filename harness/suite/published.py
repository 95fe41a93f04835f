"""The schema of ``published.yaml``: every claim of a publication, as printed, and its location.

A claim's `value` is in its `unit`; `precision` is the step to which it was rounded in print.
"""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from harness.metrics import METRICS, Better, MetricName
from harness.validation import Count, Identifier, Positive, Strict

Condition = Literal["gpu", "gpu_count", "engine", "lengths", "concurrency", "speculation"]
CONDITIONS: tuple[Condition, ...] = (
    "gpu",
    "gpu_count",
    "engine",
    "lengths",
    "concurrency",
    "speculation",
)
"""What must be equal for two numbers to be comparable, unless a claim overrides it."""

DEFAULT_TOLERANCE = 0.05


class MeasuredBy(Strict):
    """The cells that measure a claim: one recipe's metric, or the quotient of two recipes'."""

    recipe: Identifier | None = None
    ratio: Annotated[tuple[Identifier, Identifier], Field(strict=False)] | None = None
    workload: Identifier
    metric: MetricName
    per: Count = 1
    """What the metric is divided by: 8 for a number per GPU."""

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.recipe is None) == (self.ratio is None):
            msg = "a claim is measured by exactly one of: recipe, ratio"
            raise ValueError(msg)
        return self

    @property
    def recipes(self) -> tuple[str, ...]:
        """All recipes that are needed."""
        return self.ratio or ((self.recipe,) if self.recipe else ())

    @property
    def better(self) -> Better:
        """Which direction is better; neither, for a quotient of two recipes."""
        return "neither" if self.ratio else METRICS[self.metric].better


class Claim(Strict):
    """One number, or statement, of the publication."""

    id: Identifier
    kind: Literal["value", "rounded", "approximate", "range", "text"]
    value: Positive | None = None
    low: Positive | None = None
    high: Positive | None = None
    text: str | None = None
    unit: str | None = None
    precision: Positive | None = None
    tolerance: Positive = DEFAULT_TOLERANCE
    where: str
    measured_by: MeasuredBy | None = None
    not_measured: str | None = None
    same_as: Identifier | None = None
    must_equal: Annotated[tuple[Condition, ...], Field(strict=False)] = CONDITIONS

    @model_validator(mode="after")
    def _fields_fit_the_kind(self) -> Self:
        given = {
            name for name in ("value", "low", "high", "text") if getattr(self, name) is not None
        }
        wanted = {"range": {"low", "high"}, "text": {"text"}}.get(self.kind, {"value"})
        if given != wanted:
            msg = f"a claim of kind {self.kind} takes exactly: {', '.join(sorted(wanted))}"
            raise ValueError(msg)
        if self.kind != "text" and (self.unit is None or self.precision is None):
            msg = "a number needs a unit and the precision that it was printed with"
            raise ValueError(msg)
        if (self.measured_by is None) == (self.not_measured is None):
            msg = "a claim takes exactly one of: measured_by, not_measured (with the reason)"
            raise ValueError(msg)
        return self


class TextTable(Strict):
    """A table of words."""

    id: Identifier
    header: Annotated[tuple[str, ...], Field(strict=False)]
    rows: Annotated[
        tuple[Annotated[tuple[str, ...], Field(strict=False)], ...], Field(strict=False)
    ]

    @model_validator(mode="after")
    def _rows_are_whole(self) -> Self:
        for number, row in enumerate(self.rows, start=1):
            if len(row) != len(self.header):
                msg = f"row {number} has {len(row)} cells, the header {len(self.header)}"
                raise ValueError(msg)
        return self


class NotStated(Strict):
    """What the publication leaves open, what the kit does instead, and why."""

    what: str
    ours: str
    why: str


class PublishedFile(Strict):
    """``published.yaml``."""

    schema_version: Literal[1]
    title: str
    url: str
    date: str
    claims: Annotated[tuple[Claim, ...], Field(min_length=1, strict=False)]
    text_tables: Annotated[tuple[TextTable, ...], Field(strict=False)] = ()
    order: Annotated[tuple[Identifier, ...], Field(strict=False)] = ()
    not_stated: Annotated[tuple[NotStated, ...], Field(strict=False)] = ()

    @model_validator(mode="after")
    def _ids_are_unique_and_known(self) -> Self:
        counts = Counter(claim.id for claim in self.claims)
        if twice := sorted(name for name, count in counts.items() if count > 1):
            msg = f"duplicate claim ids: {', '.join(twice)}"
            raise ValueError(msg)
        for claim in self.claims:
            if claim.same_as == claim.id:
                msg = f"{claim.id} is the same as itself"
                raise ValueError(msg)
            if claim.same_as is not None and claim.same_as not in counts:
                msg = f"{claim.id} is the same as {claim.same_as}, which is not a claim"
                raise ValueError(msg)
        return self

    def value(self, recipe: str | tuple[str, str], workload: str, metric: str) -> float | None:
        """Return the printed value of a table's cell; None where nothing is published for it.

        The exact claim is preferred: prose rounds what the tables print.
        """
        found = [
            claim
            for claim in self.claims
            if claim.measured_by
            and claim.measured_by.per == 1
            and (claim.measured_by.recipe or claim.measured_by.ratio) == recipe
            and claim.measured_by.workload == workload
            and claim.measured_by.metric == metric
        ]
        exact = [claim for claim in found if claim.kind == "value"] or found
        return exact[0].value if exact else None
