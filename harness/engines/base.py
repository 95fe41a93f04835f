"""An engine as an object: all that the kit knows about it is in its own file.

What a recipe may set, and what that means, is in `harness.settings`; the rest is here: its
command, its endpoints and counters, how it reports compilation, what it needs from a host, and
what a reader must be told.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import JsonValue

from harness.document import Line
from harness.engines.client import ClientModel
from harness.host.facts import HostFacts
from harness.runtime.base import Command
from harness.settings.base import EngineSettings
from harness.stamped_log import moment_of
from harness.suite.plan import RequestSet, Session

Kind = Literal["input", "output"]


class Engine(ABC):
    """What is the same for servers and in-process engines."""

    settings: ClassVar[EngineSettings]

    compiles: ClassVar[re.Pattern[str] | None] = None
    """A log line that reports that kernels were compiled; None: it never reports it."""
    startup: ClassVar[tuple[re.Pattern[str], ...]] = ()
    """Lines of its log that describe the outcome of its start: memory, KV cache, graphs."""
    driving: ClassVar[Line] = ""
    """What its drive modes are, and what the table that compares them shows."""
    rdma: ClassVar[str | None] = None
    """What it needs RDMA for, shown on a host without it; None: it needs none."""

    @property
    def name(self) -> str:
        """As recipes write it."""
        return self.settings.name

    def remarks(self, facts: HostFacts) -> Iterator[str]:  # noqa: ARG002 - most have none
        """Yield what may go wrong on this host without stopping a run."""
        yield from ()

    def notes(self, session: Session) -> Iterator[Line]:  # noqa: ARG002 - most have none
        """Yield what a reader must know before quoting a number of ``session``."""
        yield from ()


@dataclass(frozen=True, kw_only=True)
class Endpoints:
    """Paths below a server's root; None if it has no such endpoint."""

    health: str = "/health"
    models: str = "/v1/models"
    """Its ``data`` is a list of served models, each with an ``id``."""
    version: str | None = "/version"
    """Answers with a ``version``."""
    tokenize: str | None = "/tokenize"
    """Takes ``model`` and ``prompt``, answers with ``tokens``."""
    metrics: str | None = "/metrics"
    """Counters in Prometheus' text format."""


class ServedEngine(Engine):
    """An engine that is loaded over HTTP."""

    endpoints: ClassVar[Endpoints] = Endpoints()
    counters: ClassVar[Mapping[str, Kind]] = {}
    """Its token counters, without ``_total``, and what each of them counts."""

    @abstractmethod
    def command(self, session: Session, model: ClientModel, host: str, port: int) -> Command:
        """Return the server's command; it serves ``model.name``, which requests will carry."""


class InProcessEngine(Engine):
    """An engine that is given token ids by `harness.inside.launcher`, one process for each rank."""

    backend: ClassVar[str]
    """``module:Class`` of its `harness.inside.backend.Backend`, imported inside the image."""
    modules: ClassVar[tuple[Path, ...]] = ()
    """Files that ``backend`` needs besides harness/inside/; they are copied next to it."""
    gpu_per_rank: ClassVar[bool] = False
    """Whether each rank sees one GPU, and finds the others through MASTER_ADDR and MASTER_PORT."""

    @abstractmethod
    def job(self, session: Session) -> dict[str, JsonValue]:
        """Return the session's settings as its backend is given them."""


@dataclass(frozen=True, kw_only=True)
class BatchWave:
    """One wave of a batch job: its id, its requests, and where its result is to be written."""

    id: str
    requests: RequestSet
    result: Path


def wave_job(wave: BatchWave, run_folder: Path) -> dict[str, JsonValue]:
    """Return one wave of a job file; the format is that of `harness.inside`."""
    return {
        "id": wave.id,
        "ids": str(run_folder / wave.requests.prompts_file),
        "output_len": wave.requests.output_len,
        "concurrency": wave.requests.concurrency,
        "seed": wave.requests.seed,
        "result": str(wave.result),
    }


Event = Mapping[str, Any]
"""One event of a batch job: ``event``, ``time`` and its own fields (`harness.inside.jobs`)."""


def flags(args: Mapping[str, JsonValue]) -> tuple[str, ...]:
    """Turn a recipe's settings into arguments: true is a bare flag, objects are JSON."""
    result: list[str] = []
    for name, value in args.items():
        if value is True:
            result.append(name)
        elif isinstance(value, dict):
            result += [name, json.dumps(value, separators=(",", ":"))]
        elif isinstance(value, list):
            result += [name, *(str(item) for item in value)]
        else:
            result += [name, str(value)]
    return tuple(result)


def startup_lines(engine: Engine, log: Path) -> Iterator[str]:
    """Yield what an engine's log says about its start, without the lines' times of arrival."""
    if not log.exists():
        return
    for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
        if any(pattern.search(line) for pattern in engine.startup):
            yield line.split(" ", 1)[-1] if moment_of(line) else line
