"""Make the plan of a suite: a pure function of its files, the filters and the pins."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from harness.errors import UsageError
from harness.suite.model import SuiteSession, Workload
from harness.suite.plan import WARMUP, Cell, Plan, RequestSet, Session
from harness.suite.read import Suite
from harness.suite.recipe import RecipeFile, Sizing
from harness.validation import nearest

Runtime = Literal["local", "docker"]


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What a person asked for; None means the suite's default."""

    runtime: Runtime | None = None
    load: str | None = None
    repeats: int | None = None
    only: tuple[str, ...] = ()


def seed_of(name: str, phase: str, repeat: int) -> int:
    """Return the seed of a request set: it does not depend on the recipe, so engines share it."""
    digest = hashlib.sha256(f"{name}/{phase}/{repeat}".encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1


def make_plan(suite: Suite, choice: Choice, *, pins: Mapping[str, str], kit_version: str) -> Plan:
    """Plan ``suite``, narrowed to what ``choice.only`` names: ``RECIPE`` or ``RECIPE/WORKLOAD``.

    Raises:
        UsageError: a filter selects nothing, or the suite does not have the load level.
    """
    file = suite.file
    _check_choice(suite, choice)
    load = choice.load or next(iter(file.loads))
    repeats = choice.repeats or file.repeats
    prompts_image = _prompts_image(suite)
    planner = _Planner(suite, file.loads[load].waves, repeats, prompts_image)
    sessions = [
        planner.session(planned, sizing, names)
        for planned in file.sessions
        for sizing, names in _groups(suite.recipes[planned.recipe], _selected(planned, choice.only))
    ]
    images = {prompts_image, *(session.image for session in sessions)}
    return Plan(
        suite=suite.name,
        title=file.title,
        about=file.about,
        notice=file.notice,
        notes=file.notes,
        kit_version=kit_version,
        runtime=choice.runtime or file.runtime,
        load=load,
        waves=file.loads[load].waves,
        repeats=repeats,
        only=choice.only,
        pins={image: pins[image] for image in sorted(images)},
        prompts_image=prompts_image,
        model=file.model,
        hardware=file.hardware,
        needs=file.needs,
        warmup=file.warmup,
        workloads=file.workloads,
        sessions=tuple(sessions),
        tables=file.tables,
        limits=file.limits,
        estimates=file.estimates,
    )


def _prompts_image(suite: Suite) -> str:
    """Return the image whose benchmark client makes the prompts, the same for every filter."""
    planned = (suite.recipes[each.recipe] for each in suite.file.sessions)
    found = next((recipe.image for recipe in planned if recipe.settings.has_client), None)
    image = suite.file.client_image or found
    if image is None:
        raise UsageError(
            f"suite {suite.name!r}: no recipe's image has the benchmark client",
            usually="prompts are made by vllm bench serve, and none of the engines is vLLM",
            next_step="name an image that has it in suite.yaml, as client_image",
        )
    return image


def _check_choice(suite: Suite, choice: Choice) -> None:
    loads = suite.file.loads
    if choice.load is not None and choice.load not in loads:
        raise UsageError(
            f"--load {choice.load}: no such load level{nearest(choice.load, loads)}",
            usually=f"this suite has: {', '.join(loads)}",
            next_step=f"python -m harness plan {suite.name} --load {next(iter(loads))}",
        )
    known = [session.recipe for session in suite.file.sessions]
    known += [f"{s.recipe}/{name}" for s in suite.file.sessions for name in s.workloads]
    for name in choice.only:
        if name not in known:
            raise UsageError(
                f"--only {name}: suite {suite.name!r} has no such cells{nearest(name, known)}",
                usually=f"its recipes and cells are: {', '.join(known)}",
                next_step=f"python -m harness plan {suite.name}",
            )


def _selected(session: SuiteSession, only: Sequence[str]) -> list[str]:
    """Return the workloads of ``session`` that run."""
    if not only:
        return [] if session.opt_in else list(session.workloads)
    return [
        name
        for name in session.workloads
        if session.recipe in only or f"{session.recipe}/{name}" in only
    ]


def _groups(recipe: RecipeFile, names: list[str]) -> Iterator[tuple[Sizing | None, list[str]]]:
    """Split workloads by their sizing: each sizing is an engine start of its own."""
    sized = {name for sizing in recipe.sizing for name in sizing.workloads}
    if unsized := [name for name in names if name not in sized]:
        yield None, unsized
    for sizing in recipe.sizing:
        if chosen := [name for name in names if name in sizing.workloads]:
            yield sizing, chosen


@dataclass(frozen=True)
class _Planner:
    suite: Suite
    waves: int
    repeats: int
    prompts_image: str

    def session(self, planned: SuiteSession, sizing: Sizing | None, names: list[str]) -> Session:
        file, recipe = self.suite.file, self.suite.recipes[planned.recipe]
        engine = recipe.settings
        client_s = file.estimates.client_start_s if engine.served else 0.0
        client_image = recipe.image if engine.has_client else self.prompts_image
        shapes: dict[str, str] = {}
        for name in names:
            shapes.setdefault(file.workloads[name].shape, name)
        warmups = {name: self._warmup(file.workloads[name]) for name in shapes.values()}
        sized = sizing.args if sizing else {}
        cells = tuple(
            self._cell(planned.recipe, name, repeat, client_s)
            for repeat in range(1, self.repeats + 1)
            for name in names
        )
        return Session(
            recipe=planned.recipe,
            title=recipe.title,
            engine=recipe.engine,
            drive=recipe.drive,
            ranks=engine.process_count({**recipe.args, **sized}, recipe.ranks),
            image=recipe.image,
            client_image=client_image if engine.served else None,
            args={**recipe.args, **sized},
            env=recipe.env,
            container=recipe.container,
            why={**recipe.why, **{name: sizing.why for name in sized if sizing}},
            warmups=tuple(warmups.values()),
            warmup_s=client_s
            + sum(self._wave_s(planned.recipe, name, each) for name, each in warmups.items()),
            cells=cells,
        )

    def _cell(self, recipe: str, name: str, repeat: int, client_s: float) -> Cell:
        workload = self.suite.file.workloads[name]
        requests = RequestSet(
            input_len=workload.input_len,
            output_len=workload.output_len,
            concurrency=workload.concurrency,
            request_rate=workload.request_rate,
            prompts=workload.wave * self.waves,
            seed=seed_of(name, "timed", repeat),
            name=name,
        )
        expected = self._wave_s(recipe, name, requests) + client_s
        return Cell(
            recipe=recipe, workload=name, repeat=repeat, requests=requests, expected_s=expected
        )

    def _warmup(self, workload: Workload) -> RequestSet:
        warmup = self.suite.file.warmup
        prompts = warmup.prompts or workload.wave
        return RequestSet(
            input_len=workload.input_len,
            output_len=min(workload.output_len, warmup.max_output_len or workload.output_len),
            concurrency=prompts,
            prompts=prompts,
            seed=seed_of(workload.shape, WARMUP, 1),
            name=f"{WARMUP}-{workload.shape}",
        )

    def _wave_s(self, recipe: str, name: str, requests: RequestSet) -> float:
        """Estimate a wave's duration in s from its published rate, else from the suite's rates."""
        arriving = requests.prompts / requests.request_rate if requests.request_rate else 0.0
        return max(arriving, self._serving_s(recipe, name, requests))

    def _serving_s(self, recipe: str, name: str, requests: RequestSet) -> float:
        if rate := self._published_rate(recipe, name, "output_throughput"):
            return requests.prompts * requests.output_len / rate
        if rate := self._published_rate(recipe, name, "input_throughput"):
            return requests.prompts * requests.input_len / rate
        estimates = self.suite.file.estimates
        return requests.prompts * (
            requests.input_len / estimates.input_tok_s
            + requests.output_len / estimates.output_tok_s
        )

    def _published_rate(self, recipe: str, name: str, metric: str) -> float | None:
        """Look a rate up; a variant without one of its own is expected to run like its base."""
        published = self.suite.published
        base = self.suite.recipes[recipe].extends
        if published is None:
            return None
        return published.value(recipe, name, metric) or (
            published.value(base, name, metric) if base else None
        )
