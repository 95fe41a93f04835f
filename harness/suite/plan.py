"""The plan: everything a run will do, as plain data that can be printed, compared and hashed.

Making a plan reads nothing but its arguments. It knows no port, no path and no clock, so the same
suite, filters and pins give the same plan, and the same hash, on every machine.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue, TypeAdapter

from harness.errors import UsageError
from harness.suite.load import Suite, nearest
from harness.suite.model import Estimates, GeneratedModel, Limits, Table, Warmup, Workload

WARMUP = "warmup"


@dataclass(frozen=True, kw_only=True)
class Load:
    """One wave of requests, all of one shape. Its prompts follow from these fields alone."""

    input_len: int
    output_len: int
    concurrency: int
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
    load: Load
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
    engine: str
    image: str
    args: Mapping[str, JsonValue]
    env: Mapping[str, str]
    why: Mapping[str, str]
    warmups: tuple[Load, ...]
    warmup_s: float
    cells: tuple[Cell, ...]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Everything that a run of a suite does on a host."""

    suite: str
    title: str
    about: str
    notice: str | None
    notes: tuple[str, ...]
    """What a reader must know before quoting a number, one sentence or two each."""
    kit_version: str
    runtime: str
    repeats: int
    only: tuple[str, ...]
    pins: Mapping[str, str]
    """Image name -> SHA-256 over its locks and build files."""
    model: GeneratedModel
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
    def loads(self) -> tuple[Load, ...]:
        """Each set of prompts that the run needs, once; engines share them."""
        every = [load for session in self.sessions for load in session.warmups]
        every += [cell.load for cell in self.cells]
        return tuple({load.prompts_file: load for load in every}.values())

    @property
    def expected_s(self) -> float:
        """Expected duration in seconds, installation and downloads apart."""
        sessions = sum(
            self.estimates.engine_start_s + s.warmup_s + sum(cell.expected_s for cell in s.cells)
            for s in self.sessions
        )
        return self.estimates.prompts_s + sessions

    def hash(self) -> str:
        """Return the SHA-256 that names this plan; estimates have no part in it."""
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
    """Return ``plan`` as JSON data; `plan_from_json` gives it back."""
    return _ADAPTER.dump_python(plan, mode="json")  # type: ignore[no-any-return]


def plan_from_json(data: JsonValue) -> Plan:
    """Rebuild a plan from a run directory.

    Raises:
        pydantic.ValidationError: the data is not a plan of this version.
    """
    return _ADAPTER.validate_json(json.dumps(data))


def seed_of(name: str, phase: str, repeat: int) -> int:
    """Return the seed of a set of prompts: never a function of the recipe, so engines share it."""
    digest = hashlib.sha256(f"{name}/{phase}/{repeat}".encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1


def make_plan(
    suite: Suite,
    *,
    runtime: str,
    pins: Mapping[str, str],
    kit_version: str,
    repeats: int | None = None,
    only: Sequence[str] = (),
) -> Plan:
    """Plan ``suite``, narrowed to what ``only`` names: ``RECIPE`` or ``RECIPE/WORKLOAD``.

    Raises:
        UsageError: a filter that selects nothing.
    """
    file = suite.file
    count = repeats if repeats is not None else file.repeats
    _check_filters(suite, only)
    sessions = []
    for planned in file.sessions:
        selected = [
            name
            for name in planned.workloads
            if not only or planned.recipe in only or f"{planned.recipe}/{name}" in only
        ]
        if not selected:
            continue
        recipe = suite.recipes[planned.recipe]
        cells = tuple(
            _cell(suite, planned.recipe, name, repeat)
            for repeat in range(1, count + 1)
            for name in selected
        )
        shapes = {file.workloads[name].shape: file.workloads[name] for name in selected}
        warmups = tuple(_warmup(file.warmup, shape, load) for shape, load in shapes.items())
        served = recipe.engine == "vllm-server"
        sessions.append(
            Session(
                recipe=planned.recipe,
                title=recipe.title,
                engine=recipe.engine,
                image=recipe.image,
                args=recipe.args,
                env=recipe.env,
                why=recipe.why,
                warmups=warmups,
                warmup_s=sum(_wave_s(file.estimates, load) for load in warmups)
                + (file.estimates.client_start_s if served else 0),
                cells=cells,
            )
        )
    images = {session.image for session in sessions}
    return Plan(
        suite=suite.name,
        title=file.title,
        about=file.about,
        notice=file.notice,
        notes=file.notes,
        kit_version=kit_version,
        runtime=runtime,
        repeats=count,
        only=tuple(only),
        pins={image: pins[image] for image in sorted(images)},
        model=file.model,
        warmup=file.warmup,
        workloads=file.workloads,
        sessions=tuple(sessions),
        tables=file.tables,
        limits=file.limits,
        estimates=file.estimates,
    )


def _check_filters(suite: Suite, only: Sequence[str]) -> None:
    known = [session.recipe for session in suite.file.sessions]
    known += [f"{s.recipe}/{name}" for s in suite.file.sessions for name in s.workloads]
    for name in only:
        if name not in known:
            raise UsageError(
                f"--only {name}: suite {suite.name!r} has no such cells{nearest(name, known)}",
                usually=f"its recipes and cells are: {', '.join(known)}",
                next_step=f"python -m harness plan {suite.name}",
            )


def _cell(suite: Suite, recipe: str, name: str, repeat: int) -> Cell:
    workload = suite.file.workloads[name]
    load = Load(
        input_len=workload.input_len,
        output_len=workload.output_len,
        concurrency=workload.concurrency,
        prompts=workload.prompts,
        seed=seed_of(name, "timed", repeat),
        name=name,
    )
    served = suite.recipes[recipe].engine == "vllm-server"
    expected = _wave_s(suite.file.estimates, load)
    expected += suite.file.estimates.client_start_s if served else 0
    return Cell(recipe=recipe, workload=name, repeat=repeat, load=load, expected_s=expected)


def _warmup(warmup: Warmup, shape: str, workload: Workload) -> Load:
    most = warmup.max_output_len or workload.output_len
    return Load(
        input_len=workload.input_len,
        output_len=min(workload.output_len, most),
        concurrency=warmup.prompts,
        prompts=warmup.prompts,
        seed=seed_of(shape, WARMUP, 1),
        name=f"{WARMUP}-{shape}",
    )


def _wave_s(estimates: Estimates, load: Load) -> float:
    """Estimate a wave's seconds: its input and its output at the suite's stated rates."""
    return load.prompts * (
        load.input_len / estimates.input_tok_s + load.output_len / estimates.output_tok_s
    )
