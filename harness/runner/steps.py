"""What a run does, step by step, as plain data.

A run carries out these very objects, and a dry run prints them. Commands, job files, folders and
logs are defined only here; neither of the two builds any of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import JsonValue

from harness.engines.gin_probe import Attempt
from harness.runtime.base import Command
from harness.suite.model import HubModel
from harness.suite.plan import Cell, RequestSet, Session


@dataclass(frozen=True, kw_only=True)
class PrepareImage:
    """Make an image ready; it is kept for later runs."""

    image: str


@dataclass(frozen=True, kw_only=True)
class CopyCode:
    """Copy the code that runs inside engines' environments into ``folder``."""

    folder: Path
    package: tuple[Path, ...]
    """Files and folders that make up the package harness/ there."""
    modules: tuple[Path, ...]
    """Engines' own modules, copied next to the package."""

    @property
    def copies(self) -> Iterator[tuple[Path, Path]]:
        """Yield each file or folder, and the folder into which it is copied."""
        yield from ((source, self.folder / "harness") for source in self.package)
        yield from ((source, self.folder) for source in self.modules)


@dataclass(frozen=True, kw_only=True)
class GenerateModel:
    """Generate the model into ``folder``."""

    name: str
    folder: Path


@dataclass(frozen=True, kw_only=True)
class DownloadModel:
    """Download the model into ``folder`` and verify it; the user's ``own`` is only verified."""

    model: HubModel
    folder: Path
    own: bool


@dataclass(frozen=True, kw_only=True)
class CommandStep:
    """One command, with all that must exist before it starts. Durations are in seconds."""

    title: str
    expected_s: float
    limit_s: float
    """It is stopped if it takes longer; a server, if it is not ready by then."""
    command: Command
    log: Path
    folders: tuple[Path, ...] = ()
    jobs: Mapping[Path, JsonValue] = field(default_factory=dict)
    """Job files to write, with their content."""


@dataclass(frozen=True, kw_only=True)
class ProbeRdma(CommandStep):
    """Find out whether the session's ranks can read from each other over the NIC."""

    attempt: Attempt


@dataclass(frozen=True, kw_only=True)
class MakePrompts(CommandStep):
    """Make the prompts of request sets, before any engine starts."""


@dataclass(frozen=True, kw_only=True)
class StartServer(CommandStep):
    """Start a server that stays up for its whole session."""

    session: Session
    port: int
    health: str
    """URL that answers once the server is ready."""


@dataclass(frozen=True, kw_only=True)
class WarmUp(CommandStep):
    """Send the discarded wave of every shape."""

    session: Session
    results: tuple[str, ...]
    """Paths of the discarded results below the session's folder."""


@dataclass(frozen=True, kw_only=True)
class Scrape:
    """Keep the server's counters in a file."""

    url: str
    path: Path


@dataclass(frozen=True, kw_only=True)
class MeasureCell(CommandStep):
    """Measure one cell on the server, reading its counters before and after."""

    cell: Cell
    before: Scrape | None
    after: Scrape | None
    result: Path


@dataclass(frozen=True, kw_only=True)
class StopServer:
    """Stop the server that ``command`` started."""

    session: Session
    command: Command


@dataclass(frozen=True, kw_only=True)
class ServerSteps:
    """One start of a server, with the cells to be measured on it."""

    session: Session
    number: int
    folder: Path
    start: StartServer
    warm_up: WarmUp
    cells: tuple[MeasureCell, ...]
    stop: StopServer

    def __iter__(self) -> Iterator[Step]:
        yield self.start
        yield self.warm_up
        yield from self.cells
        yield self.stop


@dataclass(frozen=True, kw_only=True)
class RunBatch(CommandStep):
    """One start of an in-process engine, with its warm-ups and the cells to be measured."""

    session: Session
    number: int
    folder: Path
    events: Path
    warmups: tuple[RequestSet, ...]
    cells: tuple[Cell, ...]

    def __iter__(self) -> Iterator[Step]:
        yield self


SessionSteps = ServerSteps | RunBatch
"""One start of an engine; iterating over either kind yields its steps in order."""

Step = (
    PrepareImage
    | CopyCode
    | GenerateModel
    | DownloadModel
    | ProbeRdma
    | MakePrompts
    | StartServer
    | WarmUp
    | MeasureCell
    | StopServer
    | RunBatch
)
