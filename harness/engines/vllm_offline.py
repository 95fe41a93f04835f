"""vLLM's offline engine in-process: a job for `harness.inside.driver`, followed by its events."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import JsonValue

from harness.clock import Clock
from harness.engines.base import BatchWave, Event, flags, log_tail, wave_job
from harness.errors import EngineError
from harness.files import write_json
from harness.process import Owner, Running, Tick
from harness.runtime.base import Command, Runtime, inside_command
from harness.suite.model import Limits
from harness.suite.plan import Session

POLL_SECONDS = 0.2


def driver_command(
    session: Session, job: Path, code: Path, *, model_folder: str, run_folder: Path
) -> Command:
    """Return the driver's command; ``code`` is the folder that holds the copied package."""
    return inside_command(
        "driver",
        job,
        code,
        role="driver",
        image=session.image,
        env=session.env,
        container=session.container,
        reads=(Path(model_folder), run_folder / "prompts"),
        writes=(job.parent, *(run_folder / cell.folder for cell in session.cells)),
    )


def driver_job(
    session: Session, model_folder: str, run_folder: Path, waves: list[BatchWave], events: Path
) -> dict[str, JsonValue]:
    """Return the job file's content; the format is the driver's."""
    return {
        "engine_args": ["--model", model_folder, *flags(session.args)],
        "events": str(events),
        "waves": [wave_job(wave, run_folder) for wave in waves],
    }


@dataclass
class VllmOffline:
    """One start of the driver."""

    runtime: Runtime
    session: Session
    model_folder: str
    run_folder: Path
    folder: Path
    code: Path
    owner: Owner
    clock: Clock
    limits: Limits
    _seen: int = field(default=0, init=False)

    @property
    def log(self) -> Path:
        """The driver's output."""
        return self.folder / "driver.log"

    def run(self, waves: list[BatchWave], tick: Tick) -> Generator[Event, None, None]:
        job, events = self.folder / "job.json", self.folder / "events.jsonl"
        write_json(job, driver_job(self.session, self.model_folder, self.run_folder, waves, events))
        command = driver_command(
            self.session,
            job,
            self.code,
            model_folder=self.model_folder,
            run_folder=self.run_folder,
        )
        running = self.runtime.start(command, log=self.log, owner=self.owner)
        try:
            yield from self._follow(running, events, tick)
        finally:
            running.stop(grace=self.limits.stop_s)

    def _follow(self, running: Running, events: Path, tick: Tick) -> Iterator[Event]:
        """Yield events until the driver ends; each of them starts a new deadline."""
        last, since, allowed = "start", self.clock.monotonic(), self.limits.engine_start_s
        while True:
            code = running.poll()
            for event in self._new_events(events):
                last, since, allowed = event["event"], self.clock.monotonic(), self.limits.wave_s
                yield event
            if code is not None:
                running.wait(0, tick)
                if code == 0 and last == "finished":
                    return
                raise EngineError(
                    f"the driver stopped after '{last}' (exit {code}); its last lines:\n"
                    f"{log_tail(self.log)}",
                    usually="a setting that this release refuses, or too little memory",
                    next_step=f"read {self.log}",
                )
            if self.clock.monotonic() - since > allowed:
                raise EngineError(
                    f"the driver gave no sign for {allowed:.0f} s after '{last}'; "
                    f"its last lines:\n{log_tail(self.log)}",
                    usually="it hangs, or this machine is much slower than the suite expects",
                    next_step=f"read {self.log}, or raise `limits` in the suite",
                )
            running.wait(POLL_SECONDS, tick)

    def _new_events(self, events: Path) -> Iterator[Event]:
        """Yield events that were not seen yet; a line without its end is still being written."""
        if not events.exists():
            return
        with events.open(encoding="utf-8") as stream:
            stream.seek(self._seen)
            for line in iter(stream.readline, ""):
                if not line.endswith("\n"):
                    return
                self._seen = stream.tell()
                yield json.loads(line)
