"""The runtimes that a plan can name, and how each is made for one owner of processes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from harness.clock import Clock
from harness.console import Progress
from harness.process import Owner
from harness.runner.site import Site
from harness.runtime.base import Runtime, RuntimeName
from harness.runtime.docker import DockerRuntime
from harness.runtime.local import LocalRuntime


class MakeRuntime(Protocol):
    """Makes a runtime that acts on behalf of ``owner``."""

    def __call__(self, site: Site, *, owner: Owner, clock: Clock, progress: Progress) -> Runtime:
        """Return it; nothing is started or connected to yet."""
        ...


Runtimes = Mapping[RuntimeName, MakeRuntime]


def local(site: Site, *, owner: Owner, clock: Clock, progress: Progress) -> Runtime:
    """Return the runtime whose engines are processes of this host."""
    return LocalRuntime(
        images=site.images,
        cache=site.cache,
        owner=owner,
        clock=clock,
        progress=progress,
        rebuild=site.rebuild,
    )


def docker(site: Site, *, owner: Owner, clock: Clock, progress: Progress) -> Runtime:
    """Return the runtime whose engines are containers of the local Docker engine."""
    return DockerRuntime(
        images=site.images,
        cache=site.cache,
        owner=owner,
        clock=clock,
        progress=progress,
        rdma=site.rdma,
        rebuild=site.rebuild,
        keep=site.keep,
        privileged=site.privileged,
    )


RUNTIMES: Runtimes = {"local": local, "docker": docker}
