"""The schema of a suite's files, strict: an unknown key or a wrong type is an error.

Units: lengths in tokens, times in seconds, rates in tokens per second.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator

from harness.metrics import MetricName
from harness.validation import Count, Identifier, Positive, Reason, Strict


class Workload(Strict):
    """Input length, output length, and how requests are sent, of one row of a published table.

    Either a fixed number of requests is kept in flight, or they arrive at a rate per second; a rate
    does not say how many there are, so it comes with a number of prompts.
    """

    input_len: Count
    output_len: Count
    concurrency: Count | None = None
    request_rate: Positive | None = None
    prompts: Count | None = None
    """Requests of one wave; given only with a rate, otherwise it is the concurrency."""

    @model_validator(mode="after")
    def _sent_in_one_way(self) -> Self:
        if (self.concurrency is None) == (self.request_rate is None):
            msg = "a workload takes exactly one of: concurrency, request_rate"
            raise ValueError(msg)
        if (self.prompts is None) != (self.request_rate is None):
            msg = "prompts, the number of requests, is given with request_rate and only with it"
            raise ValueError(msg)
        return self

    @property
    def wave(self) -> int:
        """Requests of one wave."""
        wave = self.prompts if self.concurrency is None else self.concurrency
        assert wave is not None, "the schema gives every workload one of them"
        return wave

    @property
    def sent(self) -> str:
        """Write how requests are sent: ``2,048`` in flight, or ``10/s``."""
        if self.concurrency is not None:
            return f"{self.concurrency:,}"
        return f"{self.request_rate:g}/s"

    @property
    def shape(self) -> str:
        """Name what kernels see of the workload: the lengths, not how requests are sent."""
        return f"{short_length(self.input_len)}-{short_length(self.output_len)}".lower()

    @property
    def label(self) -> str:
        """Name the lengths as the publication does: ``1K → 1K``."""
        return f"{short_length(self.input_len)} → {short_length(self.output_len)}"


def short_length(tokens: int) -> str:
    """Write whole multiples of 1,024 as ``1K``, ``8K``; anything else unchanged."""
    return f"{tokens // 1024}K" if tokens % 1024 == 0 else str(tokens)


class LoadLevel(Strict):
    """How many waves of requests a workload has."""

    waves: Count
    why: str


class Warmup(Strict):
    """The discarded wave that each engine session runs once for each shape.

    It has `prompts` requests if given, else as many as one wave of the workload.
    """

    prompts: Count | None = None
    max_output_len: Count | None = None


class GeneratedModel(Strict):
    """A model that the kit generates: random weights, nothing to download."""

    name: str
    generator: Literal["tiny-llama"]
    tokenizer_mode: str = "auto"


class HubModel(Strict):
    """A model that is downloaded; a revision of null is locked at the first download."""

    name: str
    repository: str
    revision: str | None
    bytes: Count
    tokenizer_mode: str = "auto"


def _model_kind(data: object) -> str:
    """Tell which kind of model it is by a key that only one kind has."""
    given = data if isinstance(data, dict) else vars(data)
    return "generated" if "generator" in given else "hub"


ServedModel = Annotated[
    Annotated[GeneratedModel, Tag("generated")] | Annotated[HubModel, Tag("hub")],
    Discriminator(_model_kind),
]


class NeedsWhy(Strict):
    """The reason for each need."""

    host_memory_gib: Reason
    shm_gib: Reason
    disk_bytes: Reason
    driver: Reason


class Needs(Strict):
    """What the host must have, each with its reason."""

    host_memory_gib: Count
    shm_gib: Count
    disk_bytes: Count
    driver: str
    why: NeedsWhy


class Hardware(Strict):
    """The host that a suite is made for; `reproduce` picks the suite made for its host."""

    gpu_name_prefix: str
    gpu_count: Count


class SuiteSession(Strict):
    """One engine start and the workloads that it serves, in this order."""

    recipe: Identifier
    workloads: Annotated[tuple[Identifier, ...], Field(min_length=1, strict=False)]
    opt_in: bool = False
    """Run only when a filter names the recipe."""


class Column(Strict):
    """One column of a table: the row's own facts, one recipe's metric, or a quotient of two."""

    title: str
    show: Literal["shape", "concurrency"] | None = None
    recipe: Identifier | None = None
    metric: MetricName | None = None
    ratio: Annotated[tuple[Identifier, Identifier], Field(strict=False)] | None = None

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if sum(source is not None for source in (self.show, self.recipe, self.ratio)) != 1:
            msg = "a column takes exactly one of: show, recipe, ratio"
            raise ValueError(msg)
        if self.show and self.metric:
            msg = "a column that shows the workload has no metric"
            raise ValueError(msg)
        return self


class Row(Strict):
    """One row of a table; `metric` applies to the columns that name none."""

    workload: Identifier
    label: str | None = None
    metric: MetricName | None = None


class Table(Strict):
    """One table of the publication, in its own columns and order."""

    id: Identifier
    title: str
    columns: Annotated[tuple[Column, ...], Field(min_length=1, strict=False)]
    rows: Annotated[tuple[Row, ...], Field(min_length=1, strict=False)]
    note: str | None = None

    @model_validator(mode="after")
    def _metric_known(self) -> Self:
        for row in self.rows:
            for column in self.columns:
                if column.show is None and column.metric is None and row.metric is None:
                    msg = f"neither column {column.title!r} nor row {row.workload!r} has a metric"
                    raise ValueError(msg)
        return self


class ComparesWith(Strict):
    """Another suite's publication, shown beside this suite's numbers by matching names."""

    suite: Identifier
    recipes: dict[Identifier, Identifier]
    workloads: dict[Identifier, Identifier]


class Estimates(Strict):
    """What the plan's durations are computed from, and where these figures come from."""

    source: str
    engine_start_s: Positive
    client_start_s: Positive
    prompts_s: Positive
    input_tok_s: Positive
    output_tok_s: Positive


class Limits(Strict):
    """Deadlines, after which something that does not respond is ended."""

    engine_start_s: Positive
    wave_s: Positive
    stop_s: Positive


class SuiteFile(Strict):
    """``suite.yaml``."""

    schema_version: Literal[1]
    title: str
    about: str
    notice: str | None = None
    notes: Annotated[tuple[str, ...], Field(strict=False)] = ()
    hardware: Hardware | None = None
    runtime: Literal["local", "docker"] = "local"
    client_image: Identifier | None = None
    """Image whose benchmark client makes the prompts and loads engines that have none of their own;
    by default, the image of the first recipe that has one."""
    model: ServedModel
    needs: Needs | None = None
    repeats: Count = 1
    loads: Annotated[dict[Identifier, LoadLevel], Field(min_length=1)]
    """The first is the default."""
    warmup: Warmup
    workloads: dict[Identifier, Workload]
    sessions: Annotated[tuple[SuiteSession, ...], Field(min_length=1, strict=False)]
    tables: Annotated[tuple[Table, ...], Field(strict=False)]
    estimates: Estimates
    limits: Limits
    compares_with: ComparesWith | None = None

    @model_validator(mode="after")
    def _each_cell_once(self) -> Self:
        cells = [(each.recipe, name) for each in self.sessions for name in each.workloads]
        if twice := sorted({"/".join(cell) for cell in cells if cells.count(cell) > 1}):
            msg = f"planned twice: {', '.join(twice)}"
            raise ValueError(msg)
        return self
