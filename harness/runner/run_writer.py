"""Writes a run directory's records; `harness.results` reads them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pydantic import BaseModel, JsonValue

from harness.files import make_folder, remove_file, write_json, write_text
from harness.host.facts import HostReading
from harness.results.records import CellRecord, RunRecord, RunState, SessionRecord, session_folder
from harness.results.reference import Reference
from harness.results.run_directory import RunDirectory
from harness.suite.plan import Cell, Plan


def create(reports: Path, plan: Plan, host_id: str, began: datetime) -> RunDirectory:
    """Return a new, still empty run directory."""
    name = f"{plan.suite}-{began:%Y%m%dT%H%M%SZ}-{host_id}"
    path = reports / name
    for count in itertools.count(2):
        if not path.exists():
            break
        path = reports / f"{name}-{count}"
    return RunDirectory(make_folder(path))


@dataclass(frozen=True)
class RunWriter:
    """Writes the records of one run. Every method raises a HostError if the disk is full."""

    directory: RunDirectory

    def begin(self, record: RunRecord) -> None:
        """Write run.json for the first time."""
        _write(self.directory.record_file, record)

    def go_on(self) -> None:
        """Record that the run has resumed."""
        self._change(state="running", ended=None)

    def image(self, name: str, evidence: Mapping[str, JsonValue]) -> None:
        """Record what an image is."""
        images = self.directory.record().images
        self._change(images={**images, name: dict(evidence)})

    def model(self, evidence: Mapping[str, JsonValue]) -> None:
        """Record revision and files of a downloaded model."""
        self._change(model=dict(evidence))

    def rdma(self, reasons: Iterable[str]) -> None:
        """Record which RDMA devices are used, and why."""
        self._change(rdma=tuple(reasons))

    def close(self, state: RunState, ended: str) -> None:
        """Record how the run ended, and when (ISO 8601, UTC)."""
        self._change(state=state, ended=ended)

    def _change(self, **fields: object) -> None:
        record = self.directory.record()
        _write(self.directory.record_file, record.model_copy(update=fields))

    def publication(self, reference: Reference) -> None:
        """Write the publication that the run is compared with."""
        _write(self.directory.published_file, reference)

    def host(self, reading: HostReading) -> None:
        """Write what the host is, and the raw texts that it was read from."""
        facts, folder = reading.facts, self.directory.path / "host"
        summary: dict[str, JsonValue] = {
            "host_id": facts.host_id,
            "cpu": facts.cpu,
            "cores": facts.cores,
            "memory_gib": round(facts.memory_gib, 1),
            "system": facts.system,
            "kernel": facts.kernel,
            "python": facts.python,
            "gpus": [f"{gpu.name}, {gpu.memory_mib} MiB, {gpu.driver}" for gpu in facts.gpus],
        }
        write_json(folder / "host.json", summary)
        for name, text in reading.raw.items():
            write_text(folder / name, text)

    def new_session(self, recipe: str) -> int:
        """Make the folder of the next engine start of ``recipe``; return its number."""
        number = 1
        while (folder := self.directory.path / session_folder(recipe, number)).exists():
            number += 1
        make_folder(folder)
        return number

    def session(self, record: SessionRecord) -> None:
        """Write session.json, once the engine is up and warm."""
        _write(self.directory.session_file(record.recipe, record.number), record)

    def cell(self, cell: Cell, record: CellRecord) -> None:
        """Write cell.json, the last file of a cell."""
        _write(self.directory.cell_file(cell), record)

    def forget(self, cell: Cell) -> None:
        """Remove cell.json: the cell is to be measured again."""
        remove_file(self.directory.cell_file(cell))


def _write(path: Path, record: BaseModel) -> None:
    write_json(path, record.model_dump(mode="json"))
