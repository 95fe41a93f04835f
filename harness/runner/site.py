"""Where things are on this host, and what a person asked for besides the plan."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from harness.host.rdma import RdmaChoice, choose, read_rdma
from harness.model.hub import hub_folder
from harness.results.run_directory import RunDirectory
from harness.runner.host_lock import default_lock
from harness.runtime.images import Images
from harness.suite.model import HubModel
from harness.suite.plan import Plan


@dataclass(frozen=True, kw_only=True)
class Site:
    """Where things are on this host."""

    reports: Path
    cache: Path
    images: Images
    lock: Path = field(default_factory=default_lock)
    model: Path | None = None
    """The user's own folder of the suite's model; if None, it is downloaded into the cache."""
    rdma: RdmaChoice = field(default_factory=lambda: choose(read_rdma()))
    rebuild: bool = False
    keep: bool = False
    privileged: bool = False

    def model_folder(self, plan: Plan, directory: RunDirectory) -> Path:
        """Return where a plan's model is, or will be."""
        if isinstance(plan.model, HubModel):
            return self.model or hub_folder(self.cache, plan.model)
        return directory.model(plan.model.name)
