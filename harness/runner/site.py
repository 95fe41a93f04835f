"""Where things are on this host, and what a person asked for beside the plan."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from harness.clock import Clock
from harness.console import Progress
from harness.host.rdma import RdmaChoice, choose, read_rdma
from harness.model.hub import hub_folder
from harness.process import Owner
from harness.results.run_directory import RunDirectory
from harness.runner.host_lock import default_lock
from harness.runtime.base import Runtime
from harness.runtime.docker import DockerRuntime
from harness.runtime.images import Images
from harness.runtime.local import LocalRuntime
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
    """The user's own folder of the suite's model; else it is downloaded into the cache."""
    rdma: RdmaChoice = field(default_factory=lambda: choose(read_rdma()))
    rebuild: bool = False
    keep: bool = False
    privileged: bool = False
    make_runtime: Callable[..., Runtime] = LocalRuntime
    """Another runtime than the local one; tests put a made-up engine here."""

    def model_folder(self, plan: Plan, directory: RunDirectory) -> Path:
        """Return where a plan's model is, or will be."""
        if isinstance(plan.model, HubModel):
            return self.model or hub_folder(self.cache, plan.model)
        return directory.model(plan.model.name)

    def runtime(
        self, name: Literal["local", "docker"], *, owner: Owner, clock: Clock, progress: Progress
    ) -> Runtime:
        """Return the runtime of a plan."""
        in_containers = functools.partial(
            DockerRuntime, rdma=self.rdma, keep=self.keep, privileged=self.privileged
        )
        make: Callable[..., Runtime] = self.make_runtime if name == "local" else in_containers
        return make(
            images=self.images,
            cache=self.cache,
            owner=owner,
            clock=clock,
            progress=progress,
            rebuild=self.rebuild,
        )
