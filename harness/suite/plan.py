"""The plan: everything a run will do, as plain data that can be printed, compared and hashed.

A plan (`harness.suite.planner` makes it) knows no port, no path and no clock, so the same
suite, filters and pins give the same plan, and the same hash, on every machine.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import JsonValue, TypeAdapter

from harness.settings.registry import EngineName
from harness.suite.model import (
    Estimates,
    GeneratedModel,
    Hardware,
    HubModel,
    Limits,
    Needs,
    Table,
    Warmup,
    Workload,
)
from harness.suite.recipe import Container

WARMUP = "warmup"


@dataclass(frozen=True, kw_only=True)
class RequestSet:
    """One wave of requests, all of one shape. Its prompts follow from these fields alone.

    Either `concurrency` of them are in flight at any time, or they arrive at `request_rate` per
    second, whatever is in flight.
    """

    input_len: int
    output_len: int
    concurrency: int | None
    request_rate: float | None = None
    prompts: int
    seed: int
    name: str
    """Folder of its prompts: the workload, or the shape for a warm-up."""

    @property
    def prompts_file(self) -> str:
        """Path of the prompts below the run directory."""
        return f"prompts/{self.name}/{self.seed}.jsonl"

    @property
    def manifest_file(self) -> str:
        """Path of the prompts' manifest below the run directory."""
        return f"prompts/{self.name}/{self.seed}.manifest.json"


@dataclass(frozen=True, kw_only=True)
class Cell:
    """Recipe x workload x repeat: what is run, resumed, judged and shown."""

    recipe: str
    workload: str
    repeat: int
    requests: RequestSet
    expected_s: float

    @property
    def id(self) -> str:
        """``recipe/workload/rN``, also its folder below cells/."""
        return f"{self.recipe}/{self.workload}/r{self.repeat}"

    @property
    def folder(self) -> str:
        """Folder of its files below the run directory."""
        return f"cells/{self.id}"


@dataclass(frozen=True, kw_only=True)
class Session:
    """One start of an engine, with the warm-ups and cells that it serves, in order."""

    recipe: str
    title: str
    engine: EngineName
    drive: str | None
    ranks: int
    """Processes that the engine is started as; 1 for a server."""
    image: str
    client_image: str | None
    """Image whose client loads it over HTTP; None for an engine that has no server."""
    args: Mapping[str, JsonValue]
    env: Mapping[str, str]
    container: Container | None
    why: Mapping[str, str]
    warmups: tuple[RequestSet, ...]
    warmup_s: float
    cells: tuple[Cell, ...]

    @property
    def needs_rdma(self) -> bool:
        """Whether its engine reads over RDMA."""
        return self.container is not None and self.container.rdma


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Everything that a run of a suite does on a host."""

    suite: str
    title: str
    about: str
    notice: str | None
    notes: tuple[str, ...]
    """What a reader must know before quoting a number, in one or two sentences each."""
    kit_version: str
    runtime: Literal["local", "docker"]
    load: str
    waves: int
    repeats: int
    only: tuple[str, ...]
    pins: Mapping[str, str]
    """Image name -> SHA-256 over its locks and build files."""
    prompts_image: str
    """Image whose benchmark client makes the prompts, whichever engines a filter selects."""
    model: GeneratedModel | HubModel
    hardware: Hardware | None
    needs: Needs | None
    warmup: Warmup
    workloads: Mapping[str, Workload]
    sessions: tuple[Session, ...]
    tables: tuple[Table, ...]
    limits: Limits
    estimates: Estimates

    @property
    def cells(self) -> tuple[Cell, ...]:
        """All cells in the order in which they run."""
        return tuple(cell for session in self.sessions for cell in session.cells)

    @property
    def by_engine(self) -> Mapping[str, Sequence[Session]]:
        """The sessions of each engine, by its name."""
        found: dict[str, list[Session]] = {}
        for session in self.sessions:
            found.setdefault(session.engine, []).append(session)
        return found

    @property
    def request_sets(self) -> tuple[RequestSet, ...]:
        """Each request set that the run needs, once; engines share them."""
        every = [request_set for session in self.sessions for request_set in session.warmups]
        every += [cell.requests for cell in self.cells]
        return tuple({request_set.prompts_file: request_set for request_set in every}.values())

    def warmups_for(self, session: Session, cells: Sequence[Cell]) -> tuple[RequestSet, ...]:
        """Return the warm-ups that ``cells`` need: on resume, only the remaining shapes."""
        names = {f"{WARMUP}-{self.workloads[cell.workload].shape}" for cell in cells}
        return tuple(request_set for request_set in session.warmups if request_set.name in names)

    @property
    def expected_s(self) -> float:
        """Expected duration in seconds, excluding installation and downloads."""
        sessions = sum(
            self.estimates.engine_start_s + s.warmup_s + sum(cell.expected_s for cell in s.cells)
            for s in self.sessions
        )
        return self.estimates.prompts_s + sessions

    def hash(self) -> str:
        """Return the SHA-256 that identifies this plan; estimates are not part of it."""
        data = plan_to_json(self)
        del data["estimates"]
        for session in data["sessions"]:
            del session["warmup_s"]
            for cell in session["cells"]:
                del cell["expected_s"]
        canonical = json.dumps(data, sort_keys=True, allow_nan=False, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()


_ADAPTER = TypeAdapter(Plan)


def plan_to_json(plan: Plan) -> dict[str, Any]:
    """Return ``plan`` as JSON data; `plan_from_json` reads it back."""
    return _ADAPTER.dump_python(plan, mode="json")  # type: ignore[no-any-return]


def plan_from_json(data: JsonValue) -> Plan:
    """Rebuild a plan from a run directory.

    Raises:
        pydantic.ValidationError: the data is not a plan of this version.
    """
    return _ADAPTER.validate_json(json.dumps(data))
