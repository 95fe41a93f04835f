"""vLLM's engine in the process that feeds it, without a server."""

from __future__ import annotations

from typing import ClassVar

from pydantic import JsonValue

from harness.engines import vllm
from harness.engines.base import InProcessEngine, flags
from harness.settings.base import EngineSettings
from harness.settings.vllm import VllmOfflineSettings
from harness.suite.plan import Session


class VllmOffline(InProcessEngine):
    """One replica for each rank; each takes its share of the prompts."""

    settings: ClassVar[EngineSettings] = VllmOfflineSettings()
    compiles = vllm.COMPILES
    startup = vllm.STARTUP
    backend = "harness.inside.vllm_rank:VllmRank"

    def job(self, session: Session) -> dict[str, JsonValue]:
        return {"flags": list(flags(session.args))}
