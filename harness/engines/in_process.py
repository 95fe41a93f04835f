"""Engines without a server: a job for `harness.inside.launcher`, followed by its events."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import JsonValue

from harness.clock import Clock
from harness.engines.base import BatchWave, Event, wave_job
from harness.engines.registry import in_process
from harness.errors import EngineStoppedError
from harness.process import Owner, Running, Tick, exit_text
from harness.runtime.base import Command, Runtime, inside_command
from harness.stamped_log import log_tail
from harness.suite.model import Limits
from harness.suite.plan import Session

POLL_SECONDS = 0.2
JOB = "job.json"
EVENTS = "events.jsonl"
DRIVER_LOG = "driver.log"
"""The launcher's output; each rank has a log of its own next to it."""
FIRST_RANK_LOG = "rank-0.log"
FAILED = "failed"
"""The launcher's last event if a rank failed: which one, how, and its log."""
TAIL_LINES = 20
"""The launcher repeats a failed rank's last 15 lines below its own message."""
MARGIN = 1.1
"""The launcher enforces the limit too, notices a hanging rank first, and knows more about it."""


def launcher_command(
    session: Session, job: Path, code: Path, *, model_folder: str, run_folder: Path
) -> Command:
    """Return the command that starts all ranks, inside one container if containers are used.

    ``code`` is the folder that holds the copied package.
    """
    return inside_command(
        "launcher",
        job,
        code,
        role="driver",
        image=session.image,
        env=session.env,
        container=session.container,
        reads=(Path(model_folder), run_folder / "prompts"),
        writes=(job.parent, *(run_folder / cell.folder for cell in session.cells)),
    )


def launcher_job(
    session: Session,
    waves: list[BatchWave],
    limits: Limits,
    *,
    model_folder: str,
    run_folder: Path,
    folder: Path,
) -> dict[str, JsonValue]:
    """Return the job file's content; the format is that of `harness.inside.launcher`."""
    engine = in_process(session)
    return {
        "backend": engine.backend,
        "gpu_per_rank": engine.gpu_per_rank,
        "drive": session.drive or "step",
        "ranks": session.ranks,
        "engine": engine.job(session),
        "model": model_folder,
        "folder": str(folder),
        "events": str(folder / EVENTS),
        "limits": {
            "start_s": limits.engine_start_s,
            "wave_s": limits.wave_s,
            "stop_s": limits.stop_s,
        },
        "waves": [wave_job(wave, run_folder) for wave in waves],
    }


@dataclass
class InProcess:
    """One start of the launcher, with all its ranks; its job file already exists."""

    runtime: Runtime
    command: Command
    log: Path
    events: Path
    owner: Owner
    clock: Clock
    limits: Limits
    _seen: int = field(default=0, init=False)

    def run(self, tick: Tick) -> Generator[Event, None, None]:
        running = self.runtime.start(self.command, log=self.log, owner=self.owner)
        try:
            yield from self._follow(running, self.events, tick)
        finally:
            running.stop(grace=self.limits.stop_s)

    def _follow(self, running: Running, events: Path, tick: Tick) -> Iterator[Event]:
        """Yield events until the launcher ends; each of them resets the deadline."""
        last, since, allowed = "start", self.clock.monotonic(), self._limit("start")
        reason, log = "", self.log
        while True:
            code = running.poll()
            for event in self._new_events(events):
                if event["event"] == FAILED:
                    reason, log = f": {event['reason']}", Path(event["log"])
                    continue
                last, since = event["event"], self.clock.monotonic()
                allowed = self._limit(last)
                yield event
            if code is not None:
                running.wait(0, tick)
                if code == 0 and last == "finished":
                    return
                raise EngineStoppedError(
                    f"the engine stopped after '{last}' ({exit_text(code)}){reason}",
                    log=log,
                    last_lines=log_tail(self.log, TAIL_LINES),
                    usually="a setting that this release refuses, or too little memory",
                    next_step=f"read {self.log}",
                )
            if self.clock.monotonic() - since > allowed:
                raise EngineStoppedError(
                    f"the engine showed no progress for {allowed:.0f} s after '{last}' and was "
                    "stopped",
                    log=self.log,
                    last_lines=log_tail(self.log),
                    usually="it hangs, or this machine is much slower than the suite expects",
                    next_step=f"read {self.log}, or raise `limits` in the suite",
                )
            running.wait(POLL_SECONDS, tick)

    def _limit(self, last: str) -> float:
        """Return how long the next event may take, in seconds."""
        starting = last in ("start", "starting")
        limit = self.limits.engine_start_s if starting else self.limits.wave_s
        return limit * MARGIN

    def _new_events(self, events: Path) -> Iterator[Event]:
        """Yield events not seen yet; a line without its newline is still being written."""
        if not events.exists():
            return
        with events.open(encoding="utf-8") as stream:
            stream.seek(self._seen)
            for line in iter(stream.readline, ""):
                if not line.endswith("\n"):
                    return
                self._seen = stream.tell()
                yield json.loads(line)
