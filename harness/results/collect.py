"""Read a run directory: every planned cell with its numbers, or with the reason why it has none.

What a report shows besides the cells is read here as well: nothing after this opens a file.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from harness.engines.base import Engine
from harness.engines.registry import engine_of
from harness.errors import UsageError
from harness.metrics import METRICS
from harness.results.bench import read_bench_file
from harness.results.cell_rules import batch_rules, compile_rules, counter_rules, engine_rules
from harness.results.measurement import Measurement, from_bench, read_batch
from harness.results.records import CellRecord, Manifest, RunRecord, SessionRecord
from harness.results.reference import Reference
from harness.results.run_directory import BATCH, BENCH, RunDirectory
from harness.results.validity import Expected, check
from harness.suite.plan import Cell, Plan, RequestSet

Status = Literal["measured", "invalid", "failed", "missing"]


@dataclass(frozen=True, kw_only=True)
class CellResult:
    """One planned cell; ``measurement`` is set only if the status is ``measured``."""

    cell: Cell
    status: Status
    reasons: tuple[str, ...] = ()
    measurement: Measurement | None = None
    file: str | None = None
    record: CellRecord | None = None


@dataclass(frozen=True, kw_only=True)
class Results:
    """A run, read back from its files alone."""

    record: RunRecord
    plan: Plan
    cells: tuple[CellResult, ...]
    sessions: tuple[SessionRecord, ...]
    """Engine starts that came up, by recipe and number."""
    manifests: Mapping[str, Manifest]
    """The manifest of each request set that was made, by its file below the run directory."""
    reference: Reference | None
    """The publication that the run is compared with."""
    host_files: tuple[str, ...]
    """Files with what was read of the host: paths below the run directory."""

    @property
    def gpus(self) -> list[str]:
        """Names of the host's GPUs, one for each."""
        return list(self.record.gpus)

    def manifest(self, request_set: RequestSet) -> Manifest | None:
        """Return the manifest of a request set; None if its prompts were not made."""
        return self.manifests.get(request_set.manifest_file)

    def of(self, recipe: str, workload: str) -> list[CellResult]:
        """Return all repeats of one row for one recipe, planned ones only."""
        return [
            each
            for each in self.cells
            if each.cell.recipe == recipe and each.cell.workload == workload
        ]

    def value(self, recipe: str, workload: str, metric: str) -> float | None:
        """Return the mean over the measured repeats; None where there is no such number."""
        values = [
            value
            for each in self.of(recipe, workload)
            if each.measurement and (value := each.measurement.metric(metric)) is not None
        ]
        return statistics.fmean(values) if values else None

    def quotient(self, above: str, below: str, workload: str, metric: str) -> float | None:
        """Return one recipe's value divided by another's."""
        over, under = (self.value(recipe, workload, metric) for recipe in (above, below))
        return over / under if over is not None and under else None

    def file(self, recipe: str, workload: str) -> str | None:
        """Return the first raw file that a value of this row comes from."""
        return next((each.file for each in self.of(recipe, workload) if each.measurement), None)

    def why_missing(self, recipe: str, workload: str, metric: str) -> list[str]:
        """Return why a row has no value for a recipe, one sentence for each cell."""
        if self.value(recipe, workload, metric) is not None:
            return []
        planned = self.of(recipe, workload)
        if not planned:
            return [f"{recipe}/{workload}: not part of this run"]
        return [
            f"{each.cell.id}: {each.status}, {'; '.join(each.reasons)}"
            for each in planned
            if each.status != "measured"
        ] or [f"{recipe}/{workload}: {METRICS[metric].why_missing}"]

    @property
    def measured(self) -> int:
        """How many planned cells were measured."""
        return sum(each.status == "measured" for each in self.cells)

    @property
    def complete(self) -> bool:
        """Return whether every planned cell was measured."""
        return self.measured == len(self.cells)


def collect(directory: RunDirectory) -> Results:
    """Read ``directory``.

    Raises:
        UsageError: it is not a run directory of this version, or one of the kit's own files in it
            is not. A cell whose files are refused has no number; that is not an error.
    """
    record = directory.record()
    plan = directory.plan_of(record)
    found = {each.manifest_file: directory.manifest(each) for each in plan.request_sets}
    manifests = {file: manifest for file, manifest in found.items() if manifest is not None}
    return Results(
        record=record,
        plan=plan,
        cells=tuple(
            _cell(directory, plan.model.name, cell, manifests, engine_of(session))
            for session in plan.sessions
            for cell in session.cells
        ),
        sessions=directory.sessions(),
        manifests=manifests,
        reference=directory.reference(),
        host_files=directory.host_files(),
    )


def _cell(
    directory: RunDirectory,
    model: str,
    cell: Cell,
    manifests: Mapping[str, Manifest],
    engine: Engine,
) -> CellResult:
    try:
        record = directory.cell_record(cell)
    except UsageError as error:
        return CellResult(cell=cell, status="failed", reasons=(error.what,))
    if record is None:
        return CellResult(cell=cell, status="missing", reasons=("it was not reached",))
    if record.state == "failed":
        reason = record.reason or "no reason was recorded"
        return CellResult(cell=cell, status="failed", reasons=(reason,), record=record)
    folder = directory.cell(cell)
    name = BENCH if engine.settings.served else BATCH
    try:
        measurement, broken = _judge_file(model, cell, folder / name, manifests)
    except UsageError as error:
        return CellResult(cell=cell, status="invalid", reasons=(error.what,), record=record)
    broken += [
        *engine_rules(record),
        *counter_rules(measurement, folder, engine),
        *compile_rules(directory.path / record.session, engine, record),
    ]
    return CellResult(
        cell=cell,
        status="invalid" if broken else "measured",
        reasons=tuple(f"{reason} ({cell.folder}/{name})" for reason in broken),
        measurement=None if broken else measurement,
        file=f"{cell.folder}/{name}",
        record=record,
    )


def _judge_file(
    model: str, cell: Cell, path: Path, manifests: Mapping[str, Manifest]
) -> tuple[Measurement, list[str]]:
    """Read a cell's result and return it with the rules that it breaks."""
    requests, manifest = cell.requests, manifests.get(cell.requests.manifest_file)
    if path.name == BATCH:
        measurement = read_batch(path)
        return measurement, list(batch_rules(measurement, requests, manifest))
    bench = read_bench_file(path)
    expected = Expected(
        model=model,
        input_len=requests.input_len,
        output_len=requests.output_len,
        concurrency=requests.concurrency,
        request_rate=requests.request_rate,
        prompts=requests.prompts,
        input_lens=manifest.lengths if manifest else None,
    )
    broken = check(bench, expected).broken
    if manifest is None:
        broken.append("the manifest of its prompts is missing")
    return from_bench(bench), broken
