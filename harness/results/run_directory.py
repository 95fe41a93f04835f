"""A run directory: one execution of a suite on one host, and the only state there is.

It is read here; `harness.runner.run_writer` writes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from harness.errors import UsageError
from harness.files import not_ours, read_record
from harness.results.records import (
    CellRecord,
    Manifest,
    RunRecord,
    SessionRecord,
    session_folder,
)
from harness.results.reference import Reference
from harness.suite.plan import Cell, Plan, RequestSet, plan_from_json

BENCH = "bench.json"
"""What the client of a server writes for one cell."""
SERVER_LOG = "server.log"
"""A server's output, in its session's folder; each line has the time at which it arrived."""
METRICS = ("metrics-before.prom", "metrics-after.prom")
"""The server's counters before and after a cell."""
BATCH = "result.json"
"""What the in-process driver writes for one cell."""


@dataclass(frozen=True)
class RunDirectory:
    """Paths and records of one run."""

    path: Path

    @property
    def record_file(self) -> Path:
        return self.path / "run.json"

    @property
    def ledger(self) -> Path:
        """Identities of all processes that this run ever started."""
        return self.path / "processes.jsonl"

    @property
    def code(self) -> Path:
        """The copy of harness/inside/ that engines' environments run."""
        return self.path / "code"

    @property
    def report(self) -> Path:
        return self.path / "report.md"

    def relative(self, path: Path) -> str:
        """Return a path below the run directory as its records name it."""
        return path.relative_to(self.path).as_posix()

    def model(self, name: str) -> Path:
        """Folder of a generated model."""
        return self.path / "model" / name

    def cell(self, cell: Cell) -> Path:
        return self.path / cell.folder

    def record(self) -> RunRecord:
        """Read run.json.

        Raises:
            UsageError: it is missing or not of this version.
        """
        if not self.record_file.exists():
            raise UsageError(
                f"{self.path} is not a run directory: it has no run.json",
                usually="another folder was meant; run directories are below reports/",
                next_step="ls reports/",
            )
        return read_record(self.record_file, RunRecord)

    @property
    def published_file(self) -> Path:
        """The publication that this run is compared with."""
        return self.path / "published.json"

    def plan_of(self, record: RunRecord) -> Plan:
        """Rebuild the plan from a record that was read already.

        Raises:
            UsageError: it is not a plan of this version.
        """
        try:
            return plan_from_json(record.plan)
        except ValidationError as error:
            raise not_ours(self.record_file, error) from error

    def session_file(self, recipe: str, number: int) -> Path:
        """The record of an engine start, written once the engine is up and warm."""
        return self.path / session_folder(recipe, number) / "session.json"

    def cell_file(self, cell: Cell) -> Path:
        """The record of a cell."""
        return self.cell(cell) / "cell.json"

    def finished(self, cell: Cell) -> bool:
        """Return whether ``cell`` has nothing left to measure.

        Its cell.json, which is written last, exists, and its engine lived until then. A cell.json
        that cannot be read counts as well: the report names it.
        """
        try:
            record = self.cell_record(cell)
        except UsageError:
            return True
        return record is not None and not record.engine_lost

    def cell_record(self, cell: Cell) -> CellRecord | None:
        """Read the record of a cell; None if there is none yet."""
        path = self.cell_file(cell)
        return read_record(path, CellRecord) if path.exists() else None

    def manifest(self, request_set: RequestSet) -> Manifest | None:
        """Read the manifest of a request set; None if there is none yet."""
        path = self.path / request_set.manifest_file
        return read_record(path, Manifest) if path.exists() else None

    def sessions(self) -> tuple[SessionRecord, ...]:
        """Read the records of all engine starts that came up and were warmed up.

        Raises:
            UsageError: one of them is not of this version.
        """
        found = sorted((self.path / "sessions").glob("*/*/session.json"))
        return tuple(read_record(path, SessionRecord) for path in found)

    def reference(self) -> Reference | None:
        """Read the publication that this run is compared with; None where there is none."""
        path = self.published_file
        return read_record(path, Reference) if path.exists() else None

    def host_files(self) -> tuple[str, ...]:
        """Return the paths, below the run directory, of all that was read of the host."""
        found = sorted((self.path / "host").glob("*"))
        return tuple(path.relative_to(self.path).as_posix() for path in found)


def newest(reports: Path, plan_hash: str, host_id: str) -> RunDirectory | None:
    """Return the newest run of exactly this plan on exactly this host, finished or not."""
    found = []
    for path in reports.glob("*/run.json"):
        directory = RunDirectory(path.parent)
        try:
            record = directory.record()
        except UsageError:
            continue
        if record.plan_hash == plan_hash and record.host == host_id:
            found.append((record.began, directory))
    return max(found, key=lambda each: each[0])[1] if found else None
