"""Run directories of synthetic numbers: what a report looks like, not what an engine does."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pydantic import JsonValue

from harness.files import write_json, write_text
from harness.results.records import CellRecord, RunRecord, SessionRecord
from harness.results.run_directory import BATCH, BENCH, METRICS, RunDirectory
from harness.runner.run_writer import RunWriter
from harness.suite.plan import Cell, Plan, Session, plan_to_json
from tests.report import raw_files
from tests.report.raw_files import Wave

BEGAN, READY, ENDED = (f"2000-01-01T0{hour}:00:00.000Z" for hour in (1, 2, 3))


@dataclass(frozen=True)
class Broken:
    """A cell without a number: failed for a reason, or with one output token too few."""

    state: Literal["failed", "invalid"]
    wave: Wave
    reason: str | None = None


@dataclass(frozen=True, kw_only=True)
class SyntheticRun:
    """A whole run of ``plan``."""

    plan: Plan
    number: Callable[[Cell], Wave | Broken | None]
    """What each cell came to; None for one that was not reached."""
    gpus: tuple[str, ...] = ()
    images: Mapping[str, dict[str, JsonValue]] = field(default_factory=dict)
    model: dict[str, JsonValue] | None = None
    rdma: tuple[str, ...] = ()
    version: Mapping[str, str] = field(default_factory=dict)
    """What each engine says that its version is."""
    reference: Mapping[str, JsonValue] | None = None
    """The content of published.json."""

    def write(self, path: Path) -> RunDirectory:
        """Write every file of the run below ``path``."""
        directory = RunDirectory(path)
        RunWriter(directory).begin(
            RunRecord(
                run="synthetic",
                plan_hash="0" * 64,
                plan=plan_to_json(self.plan),
                host="synthetic",
                host_summary="a host that does not exist",
                gpus=self.gpus,
                kit_version=self.plan.kit_version,
                kit_commit=None,
                began=BEGAN,
                state="finished",
                ended=ENDED,
                images=dict(self.images),
                model=self.model,
                rdma=self.rdma,
            )
        )
        write_json(path / "host" / "host.json", {"synthetic": True})
        if self.reference is not None:
            write_json(directory.published_file, self.reference)
        for requests in self.plan.request_sets:
            write_json(path / requests.manifest_file, raw_files.manifest(requests))
        numbers = {recipe: itertools.count(1) for recipe in {s.recipe for s in self.plan.sessions}}
        for session in self.plan.sessions:
            self._session(directory, session, next(numbers[session.recipe]))
        return directory

    def _session(self, directory: RunDirectory, session: Session, number: int) -> None:
        served = session.engine == "vllm-server"
        record = SessionRecord(
            recipe=session.recipe,
            number=number,
            began=BEGAN,
            command=f"start-of {session.recipe}",
            startup={
                "ready_after_s": 60.0,
                "version": self.version.get(session.engine, "0.0"),
                **({} if served else {"engine": session.engine.partition("-")[0]}),
            },
            warmups=tuple(f"warmup/{requests.name}.json" for requests in session.warmups),
            tokenize_checked=2 * len(session.cells) if served else None,
        )
        RunWriter(directory).session(record)
        for cell in session.cells:
            found = self.number(cell)
            if found is not None:
                self._cell(directory, session, record, cell, found)

    def _cell(
        self,
        directory: RunDirectory,
        session: Session,
        record: SessionRecord,
        cell: Cell,
        found: Wave | Broken,
    ) -> None:
        broken = found if isinstance(found, Broken) else None
        wave = found.wave if isinstance(found, Broken) else found
        folder = directory.cell(cell)
        if broken is None or broken.state == "invalid":
            lens = [cell.requests.output_len] * cell.requests.prompts
            lens[0] -= broken is not None
            if session.engine == "vllm-server":
                write_json(
                    folder / BENCH, raw_files.bench(self.plan.model.name, cell.requests, wave, lens)
                )
                for name, factor in zip(METRICS, (0, 1), strict=True):
                    write_text(folder / name, raw_files.counters(cell.requests, lens, factor))
            else:
                write_json(folder / BATCH, raw_files.batch(session, cell.requests, wave, lens))
        RunWriter(directory).cell(
            cell,
            CellRecord(
                cell=cell.id,
                session=record.folder,
                state="failed" if broken and broken.state == "failed" else "ran",
                reason=broken.reason if broken else None,
                began=READY,
                ended=ENDED,
                command=f"measure {cell.id}",
                engine_before=record.folder,
                engine_after=record.folder,
            ),
        )
