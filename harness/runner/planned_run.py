"""What every step of a run is derived from: the plan, the run directory, the model's folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from harness.engines.client import ClientModel
from harness.results.run_directory import RunDirectory
from harness.suite.plan import Plan, Session


@dataclass(frozen=True, kw_only=True)
class PlannedRun:
    """A plan with the places where it is carried out."""

    plan: Plan
    directory: RunDirectory
    model_folder: Path

    @property
    def model(self) -> ClientModel:
        """The served model as clients name it."""
        return ClientModel.of(self.plan, self.model_folder)

    @property
    def rdma_session(self) -> Session | None:
        """The session whose grants are probed, if any needs RDMA."""
        return next((each for each in self.plan.sessions if each.needs_rdma), None)
