"""A command as plain data, and what every runtime does with one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from pydantic import JsonValue

from harness.host.rdma import RdmaChoice
from harness.process import Owner, Running
from harness.suite.recipe import Container

RuntimeName = Literal["local", "docker"]


@dataclass(frozen=True, kw_only=True)
class Command:
    """One command inside an image's environment; ``argv[0]`` is a program of that environment."""

    role: str
    image: str
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    container: Container | None = None
    """What the recipe grants its engine's container; clients and tools are granted nothing."""
    reads: tuple[Path, ...] = ()
    writes: tuple[Path, ...] = ()
    """Folders and files of the host that it needs, at the same path wherever it runs."""

    @property
    def is_engine(self) -> bool:
        """Whether it is the program under test, not a client or a tool."""
        return self.role in ENGINE_ROLES


ENGINE_ROLES = ("server", "driver")


OFFLINE = {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}
"""What every command gets in every runtime: nothing is fetched or reported while it measures."""


def inside_command(
    module: str,
    job: Path,
    code: Path,
    *,
    role: str,
    image: str,
    env: Mapping[str, str] | None = None,
    container: Container | None = None,
    reads: tuple[Path, ...] = (),
    writes: tuple[Path, ...] = (),
) -> Command:
    """Return the command that runs a module of `harness.inside` on a job file.

    ``code`` is the folder that holds the copied package; it and the job are always read.
    """
    return Command(
        role=role,
        image=image,
        argv=("python3", "-m", f"harness.inside.{module}", str(job)),
        env={**(env or {}), "PYTHONPATH": str(code)},
        container=container,
        reads=(code, job, *reads),
        writes=writes,
    )


class Lines(Protocol):
    """Prints what a runtime does."""

    def preparation(self, image: str) -> list[str]:
        """Return the shell lines that make ``image`` ready."""
        ...

    def line(self, command: Command) -> str:
        """Return ``command`` as one shell line, ready to paste."""
        ...

    def folders(self, command: Command) -> list[Path]:
        """Return the folders that must exist before ``command`` starts."""
        ...

    def stop_line(self, command: Command) -> str:
        """Return the shell line that stops ``command`` once it was started in the background."""
        ...


class Runtime(Lines, Protocol):
    """Makes images ready, prints commands, and starts them."""

    @property
    def name(self) -> str:
        """Name by which a person chooses it."""
        ...

    def prepare(self, image: str) -> Mapping[str, JsonValue]:
        """Make ``image`` ready and return the evidence of what it is, for the run directory.

        Raises:
            HostError: this host cannot run it.
            ImageError: it could not be installed, pulled or built.
        """
        ...

    def start(self, command: Command, *, log: Path, owner: Owner) -> Running:
        """Start ``command`` with its output in ``log``.

        Raises:
            ImageError: its image is not what was prepared, or lacks the program.
        """
        ...

    def with_rdma(self, choice: RdmaChoice) -> Runtime:
        """Return this runtime with another choice of RDMA devices and settings."""
        ...

    def is_privileged(self, command: Command) -> bool:
        """Return whether ``command`` runs in a privileged container."""
        ...

    def end_leftovers(self, owner: Owner) -> int:
        """End what an earlier, killed process of this run left behind; return how many."""
        ...
