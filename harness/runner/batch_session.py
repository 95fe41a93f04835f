"""One start of an in-process engine: one job with its warm-ups and cells."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from harness.clock import stamp
from harness.engines.base import Event, startup_lines
from harness.engines.in_process import FIRST_RANK_LOG, InProcess
from harness.engines.registry import engine_of
from harness.errors import EngineError
from harness.files import write_text
from harness.results.records import CellRecord, SessionRecord
from harness.runner.context import Context
from harness.runner.failure import Failure, failure_of
from harness.runner.steps import RunBatch
from harness.suite.plan import WARMUP, Cell

REPORTED = ("engine", "version", "sampling", "kv_cache_tokens", "max_num_seqs", "ranks")
"""What an engine says about itself once it is ready; sizes are those of one rank."""


@dataclass(frozen=True)
class BatchSession:
    """Carries out one start of an in-process engine."""

    context: Context
    step: RunBatch

    def run(self) -> None:
        """Measure the step's cells.

        Raises:
            EngineError: the engine did not start, or stopped in between. What was measured before
                stays, and the cell that ran is recorded as failed.
        """
        context, step = self.context, self.step
        line = context.runtime.line(step.command)
        write_text(step.folder / "command.txt", line + "\n")
        context.lay_out(step)
        engine = InProcess(
            runtime=context.runtime,
            command=step.command,
            log=step.log,
            events=step.events,
            owner=context.owner,
            clock=context.clock,
            limits=context.plan.limits,
        )
        began, began_s = stamp(context.clock.now()), context.clock.monotonic()
        with contextlib.closing(engine.run(context.progress.tick)) as events:
            with context.progress.step(step.title, expected_s=step.expected_s):
                ready = _await(events, "ready")
            ready_after_s = round(context.clock.monotonic() - began_s, 1)
            with context.progress.step(
                f"{step.session.recipe}: warm up {len(step.warmups)} shapes, discarded",
                expected_s=step.session.warmup_s,
            ):
                for requests in step.warmups:
                    _await(events, "wave-finished", requests.name)
            # All ranks say the same about themselves.
            first_rank = step.folder / FIRST_RANK_LOG
            record = SessionRecord(
                recipe=step.session.recipe,
                number=step.number,
                began=began,
                command=line,
                startup={
                    "ready_after_s": ready_after_s,
                    **{name: ready[name] for name in REPORTED},
                    "said": list(startup_lines(engine_of(step.session), first_rank)),
                },
                warmups=tuple(f"{WARMUP}/{requests.name}.json" for requests in step.warmups),
                privileged=context.runtime.is_privileged(step.command),
            )
            context.writer.session(record)
            for cell in step.cells:
                self._measure(cell, record, events)
            for _ in events:  # until the launcher's own end, so that its exit is seen
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
            self._record(cell, record, (began, now), failure_of(error, self.step.log))
            raise
        self._record(cell, record, (began, ended), None)

    def _record(
        self, cell: Cell, session: SessionRecord, window: tuple[str, str], failure: Failure | None
    ) -> None:
        context = self.context
        engine = f"session {session.number} of {session.recipe}"
        record = CellRecord(
            cell=cell.id,
            session=session.folder,
            state="failed" if failure else "ran",
            reason=failure.reason if failure else None,
            cause=failure.cause if failure else None,
            log=context.directory.relative(failure.log) if failure else None,
            began=window[0],
            ended=window[1],
            command=session.command,
            engine_before=engine,
            engine_after="gone" if failure else engine,
        )
        context.writer.cell(cell, record)
        if failure:
            context.progress.say(f"  {cell.id} was not measured: {failure.reason}")


def _moment(event: Event) -> str:
    return stamp(datetime.fromtimestamp(event["time"], UTC))


def _await(events: Iterator[Event], name: str, wave: str | None = None) -> Event:
    """Skip events up to the wanted one; the engine raises if it ends before that."""
    for event in events:
        if event["event"] == name and (wave is None or event["wave"] == wave):
            return event
    msg = f"the launcher's events end before {name} {wave or ''}"
    raise AssertionError(msg)
