"""The two protocols that a runner knows engines by, and what both kinds of engine share."""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from pydantic import JsonValue

from harness.process import Tick
from harness.suite.plan import RequestSet


class Server(Protocol):
    """An engine that is loaded over HTTP: up, then an endpoint, then down."""

    def up(self, tick: Tick) -> Mapping[str, JsonValue]:
        """Start it and wait until it answers; return what it says of itself.

        Raises:
            EngineError: it did not come up.
        """
        ...

    @property
    def base_url(self) -> str:
        """Root of the endpoint."""
        ...

    def identity(self) -> str:
        """Return what tells this start from any other."""
        ...

    def alive(self) -> bool:
        """Return whether it still runs."""
        ...

    def wait(self, seconds: float, tick: Tick) -> int | None:
        """Wait up to ``seconds`` for its end; return the exit code, or None if it still runs."""
        ...

    def down(self) -> None:
        """Stop it and verify that nothing is left."""
        ...


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
"""One event of a batch job: ``event``, ``time`` and what belongs to it (`harness.inside.jobs`)."""


class Batch(Protocol):
    """An engine that is given all its work at once: a job in, events and results out."""

    def run(self, tick: Tick) -> Generator[Event, None, None]:
        """Run its job in one engine start and yield its events; closing it ends the engine.

        Raises:
            EngineError: it did not start, stopped early, or did not answer in time.
        """
        ...


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
