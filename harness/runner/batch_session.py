"""One start of an in-process engine: one job with its warm-ups and cells."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from harness.clock import stamp
from harness.engines.base import BatchWave, Event
from harness.engines.in_process import JOB, InProcess, launcher_command
from harness.errors import EngineError
from harness.files import write_text
from harness.results.records import CellRecord, SessionRecord
from harness.results.run_directory import BATCH
from harness.runner.context import Context
from harness.suite.plan import WARMUP, Cell, RequestSet, Session

REPORTED = ("engine", "version", "sampling", "kv_cache_tokens", "max_num_seqs", "ranks")
"""What an engine says of itself once it is ready; sizes are those of one rank."""


def batch_waves(
    warmups: Sequence[RequestSet], cells: Sequence[Cell], run: Path, folder: Path
) -> list[BatchWave]:
    """Return the waves of one engine start: a warm-up for each shape, then the cells."""
    discarded = [
        BatchWave(
            id=requests.name,
            requests=requests,
            result=folder / WARMUP / f"{requests.name}.json",
        )
        for requests in warmups
    ]
    timed = [
        BatchWave(id=cell.id, requests=cell.requests, result=run / cell.folder / BATCH)
        for cell in cells
    ]
    return [*discarded, *timed]


@dataclass(frozen=True)
class BatchSession:
    """Carries one planned session out in-process; `cells` are those still to be measured."""

    context: Context
    session: Session

    def run(self, cells: list[Cell]) -> None:
        """Measure ``cells``.

        Raises:
            EngineError: the engine did not start, or stopped in between. What was measured before
                stays, and the cell that ran is recorded as failed.
        """
        context, session = self.context, self.session
        number, folder = context.directory.new_session(session.recipe)
        engine = InProcess(
            runtime=context.runtime,
            session=session,
            model_folder=context.model.folder,
            run_folder=context.directory.path,
            folder=folder,
            code=context.directory.code,
            owner=context.owner,
            clock=context.clock,
            limits=context.plan.limits,
        )
        line = context.runtime.line(
            launcher_command(
                session,
                folder / JOB,
                context.directory.code,
                model_folder=context.model.folder,
                run_folder=context.directory.path,
            )
        )
        write_text(folder / "command.txt", line + "\n")
        warmups = context.plan.warmups_for(session, cells)
        waves = batch_waves(warmups, cells, context.directory.path, folder)
        began, began_s = stamp(context.clock.now()), context.clock.monotonic()
        with contextlib.closing(engine.run(waves, context.progress.tick)) as events:
            with context.progress.step(
                f"{session.recipe}: start the engine",
                expected_s=context.plan.estimates.engine_start_s,
            ):
                ready = _await(events, "ready")
            ready_after_s = round(context.clock.monotonic() - began_s, 1)
            with context.progress.step(
                f"{session.recipe}: warm up {len(warmups)} shapes, discarded",
                expected_s=session.warmup_s,
            ):
                for requests in warmups:
                    _await(events, "wave-finished", requests.name)
            record = SessionRecord(
                recipe=session.recipe,
                number=number,
                began=began,
                command=line,
                startup={
                    "ready_after_s": ready_after_s,
                    **{name: ready[name] for name in REPORTED},
                },
                warmups=tuple(f"{WARMUP}/{requests.name}.json" for requests in warmups),
            )
            context.directory.save_session(record)
            for cell in cells:
                self._measure(cell, record, events)
            for _ in events:  # to the launcher's own end, so that its exit is seen
                pass

    def _measure(self, cell: Cell, record: SessionRecord, events: Iterator[Event]) -> None:
        began = ended = stamp(self.context.clock.now())
        try:
            with self.context.progress.step(cell.id, expected_s=cell.expected_s):
                # The launcher's own times: reading its events can lag behind.
                began = _moment(_await(events, "wave-started", cell.id))
                ended = _moment(_await(events, "wave-finished", cell.id))
        except EngineError as error:
            now = stamp(self.context.clock.now())
            self._record(cell, record, (began, now), error.what.splitlines()[0])
            raise
        self._record(cell, record, (began, ended), None)

    def _record(
        self, cell: Cell, session: SessionRecord, window: tuple[str, str], reason: str | None
    ) -> None:
        engine = f"session {session.number} of {session.recipe}"
        record = CellRecord(
            cell=cell.id,
            session=session.folder,
            state="failed" if reason else "ran",
            reason=reason,
            began=window[0],
            ended=window[1],
            command=session.command,
            engine_before=engine,
            engine_after="gone" if reason else engine,
        )
        self.context.directory.save_cell(cell, record)


def _moment(event: Event) -> str:
    return stamp(datetime.fromtimestamp(event["time"], UTC))


def _await(events: Iterator[Event], name: str, wave: str | None = None) -> Event:
    """Pass over events up to the one that is wanted; the engine raises if it ends before."""
    for event in events:
        if event["event"] == name and (wave is None or event["wave"] == wave):
            return event
    msg = f"the launcher's events end before {name} {wave or ''}"
    raise AssertionError(msg)
