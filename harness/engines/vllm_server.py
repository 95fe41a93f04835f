"""``vllm serve``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from harness.engines import vllm
from harness.engines.base import Kind, ServedEngine, flags
from harness.engines.client import ClientModel
from harness.runtime.base import Command
from harness.settings.base import EngineSettings
from harness.settings.vllm import VllmServerSettings
from harness.suite.plan import Session


class VllmServer(ServedEngine):
    """vLLM's OpenAI server: one process, or one for each data-parallel rank behind it."""

    settings: ClassVar[EngineSettings] = VllmServerSettings()
    compiles = vllm.COMPILES
    startup = vllm.STARTUP
    counters: ClassVar[Mapping[str, Kind]] = {
        "vllm:prompt_tokens": "input",
        "vllm:generation_tokens": "output",
    }
    """Of v1/metrics/loggers.py, one series for each engine."""

    def command(self, session: Session, model: ClientModel, host: str, port: int) -> Command:
        return Command(
            role="server",
            image=session.image,
            argv=(
                *("vllm", "serve", model.folder, "--served-model-name", model.name),
                *("--host", host, "--port", str(port)),
                *flags(session.args),
            ),
            env=session.env,
            container=session.container,
            reads=(Path(model.folder),),
        )
