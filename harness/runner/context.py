"""What every step of a run is given."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from harness.clock import Clock
from harness.console import Progress
from harness.engines.client import ClientModel
from harness.errors import EngineError
from harness.process import Owner
from harness.results.run_directory import RunDirectory
from harness.runtime.base import Command, Runtime
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
    def model(self) -> ClientModel:
        """The served model as clients name it."""
        return ClientModel.of(self.plan, self.model_folder)

    def run_tool(self, command: Command, log: Path, what: str, timeout: float) -> None:
        """Run a command to its end.

        Raises:
            EngineError: it failed or took longer than ``timeout`` seconds.
        """
        running = self.runtime.start(command, log=log, owner=self.owner)
        try:
            code = running.wait(timeout, self.progress.tick)
        finally:
            running.stop(grace=self.plan.limits.stop_s)
        if code != 0:
            outcome = f"still ran after {timeout:.0f} s" if code is None else f"exit {code}"
            raise EngineError(
                f"could not {what} ({outcome}); the last lines:\n{log_tail(log)}",
                usually="the engine's environment is incomplete, or the server stopped answering",
                next_step=f"read {log}",
            )
