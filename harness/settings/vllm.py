"""vLLM's settings: the flags of ``vllm serve``, which its in-process engine takes as well."""

from __future__ import annotations

from typing import ClassVar

from pydantic import JsonValue

from harness.settings.base import MODELS_OWN, EngineSettings, Form, Given


class _Vllm(EngineSettings):
    product: ClassVar[str] = "vLLM"
    form: ClassVar[Form] = "flags"
    has_client: ClassVar[bool] = True
    reserved: ClassVar[tuple[str, ...]] = ("--model", "--host", "--port", "--served-model-name")

    def speculation(self, given: Given) -> JsonValue:
        return given.args.get("--speculative-config")

    def prefix_caching(self, given: Given) -> bool:
        # On unless it is turned off (vllm 0.31, engine/arg_utils.py).
        return "--no-enable-prefix-caching" not in given.args

    def sampling(self, given: Given) -> str:
        source = given.args.get("--generation-config", "auto")
        parts = [MODELS_OWN if source == "auto" else f"generation config {source}"]
        if changed := given.args.get("--override-generation-config"):
            parts.append(f"overridden by {changed}")
        return ", ".join(parts)


class VllmServerSettings(_Vllm):
    """``vllm serve``."""

    name: ClassVar[str] = "vllm-server"
    served: ClassVar[bool] = True


class VllmOfflineSettings(_Vllm):
    """vLLM's engine in the process that feeds it, as one or several replicas."""

    name: ClassVar[str] = "vllm-offline"
    served: ClassVar[bool] = False
    replicates: ClassVar[bool] = True
