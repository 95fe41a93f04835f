"""The context that every step of a run is given."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from harness.clock import Clock
from harness.console import Progress
from harness.errors import EngineError
from harness.files import make_folder, write_json
from harness.process import Owner, Running, Tick, exit_text
from harness.results.run_directory import RunDirectory
from harness.runner.planned_run import PlannedRun
from harness.runner.run_writer import RunWriter
from harness.runner.steps import CommandStep
from harness.runtime.base import Runtime
from harness.stamped_log import log_tail
from harness.suite.plan import Plan


@dataclass(frozen=True, kw_only=True)
class Context:
    """One run: what to do, where, in what, and on whose behalf."""

    plan: Plan
    directory: RunDirectory
    runtime: Runtime
    owner: Owner
    clock: Clock
    progress: Progress
    model_folder: Path

    @property
    def planned(self) -> PlannedRun:
        """What the run's steps are derived from."""
        return PlannedRun(plan=self.plan, directory=self.directory, model_folder=self.model_folder)

    @property
    def writer(self) -> RunWriter:
        """The writer of the run's records."""
        return RunWriter(self.directory)

    def lay_out(self, step: CommandStep) -> None:
        """Make what a step's command expects to exist: its folders and job files."""
        for folder in step.folders:
            make_folder(folder)
        for path, job in step.jobs.items():
            write_json(path, job)

    def start(self, step: CommandStep) -> Running:
        """Start a step's command, once everything it expects exists."""
        self.lay_out(step)
        return self.runtime.start(step.command, log=step.log, owner=self.owner)

    def run_tool(self, step: CommandStep, what: str, tick: Tick) -> None:
        """Run a step's command to its end, shown as a step of the run.

        ``tick`` is called meanwhile and may raise to end it.

        Raises:
            EngineError: it failed or took longer than the step's limit.
        """
        with self.progress.step(step.title, expected_s=step.expected_s):
            running = self.start(step)
            try:
                code = running.wait(step.limit_s, tick)
            finally:
                running.stop(grace=self.plan.limits.stop_s)
        if code != 0:
            outcome = (
                f"still running after {step.limit_s:.0f} s" if code is None else exit_text(code)
            )
            raise EngineError(
                f"could not {what} ({outcome})\nthe last lines:\n{log_tail(step.log)}",
                usually="the engine's environment is incomplete, or the server stopped answering",
                next_step=f"read {step.log}",
            )
