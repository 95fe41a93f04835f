"""The toys as the kit's engine objects."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar

from pydantic import JsonValue

from harness.document import Line
from harness.engines.base import Endpoints, InProcessEngine, Kind, ServedEngine
from harness.engines.client import ClientModel
from harness.metrics import Metric, milliseconds
from harness.runtime.base import Command
from harness.settings.base import EngineSettings, Form, Given
from harness.suite.plan import Session


class ToySettings(EngineSettings):
    product: ClassVar[str] = "Toy"

    def speculation(self, given: Given) -> JsonValue:
        return None

    def prefix_caching(self, given: Given) -> bool:
        return False

    def sampling(self, given: Given) -> str:
        return "only the likeliest token"


class ToyServerSettings(ToySettings):
    name: ClassVar[str] = "toy-server"
    served: ClassVar[bool] = True
    form: ClassVar[Form] = "flags"


class ToyInsideSettings(ToySettings):
    name: ClassVar[str] = "toy-inside"
    served: ClassVar[bool] = False
    form: ClassVar[Form] = "keywords"
    replicates: ClassVar[bool] = True


class ToyServer(ServedEngine):
    settings: ClassVar[EngineSettings] = ToyServerSettings()
    startup = (re.compile("blocks of cache"),)
    endpoints = Endpoints(
        health="/up", models="/served-models", version=None, tokenize=None, metrics="/counts"
    )
    counters: ClassVar[Mapping[str, Kind]] = {"toy_read": "input"}

    def command(self, session: Session, model: ClientModel, host: str, port: int) -> Command:
        return Command(
            role="server",
            image=session.image,
            argv=(
                *("toy-serve", model.folder, "--listen", f"{host}:{port}"),
                *("--call-it", model.name, *session.args),
            ),
            env=session.env,
            reads=(Path(model.folder),),
        )

    def notes(self, session: Session) -> Iterator[Line]:
        yield f"{session.recipe} is a toy."


class ToyInside(InProcessEngine):
    settings: ClassVar[EngineSettings] = ToyInsideSettings()
    backend = "toy_backend:ToyBackend"
    modules = (Path(__file__).with_name("toy_backend.py"),)

    def job(self, session: Session) -> dict[str, JsonValue]:
        return dict(session.args)


LONGEST = Metric(
    name="longest_ttft_ms",
    title="longest TTFT",
    unit="ms",
    better="lower",
    write=milliseconds,
    from_client=lambda numbers: numbers.get("longest_ttft_ms"),
    from_wave=lambda wave: 1e3 * max(wave.latencies["ttft"]),
    why_missing="the client does not say",
)
