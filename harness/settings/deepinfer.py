"""DeepInfer's settings: keyword arguments of ``deepinfer.LLM`` (deepinfer 0.1.0)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

from pydantic import JsonValue

from harness.settings.base import EngineSettings, Form, Given, Recipe

RANKS = "data_parallel_size"
DRAFTS = "DEEPINFER_USE_NEXTN_DECODE"
DEFAULT_DRAFTS = "5"
"""Draft tokens if nothing is set (envs.py)."""
MADE_UP = "DEEPINFER_FORCE_"
"""These variables route tokens to made-up experts: a profiling aid, not the model."""


class DeepInferSettings(EngineSettings):
    """One process for each GPU; all of them step together."""

    name: ClassVar[str] = "deepinfer"
    product: ClassVar[str] = "DeepInfer"
    served: ClassVar[bool] = False
    form: ClassVar[Form] = "keywords"
    reserved: ClassVar[tuple[str, ...]] = ("model", "engine_rank", "decode_sequence")
    drives: ClassVar[tuple[str, ...]] = ("generate", "step")

    def broken(self, recipe: Recipe) -> Iterator[str]:
        yield from super().broken(recipe)
        if RANKS not in recipe.args:
            yield f"{self.name} needs {RANKS}: one process is started for each rank"
        if forced := sorted(name for name in recipe.env if name.startswith(MADE_UP)):
            yield f"this replaces the model's routing with a made-up one: {', '.join(forced)}"

    def broken_args(self, args: Mapping[str, JsonValue]) -> Iterator[str]:
        yield from super().broken_args(args)
        ranks = args.get(RANKS, 1)
        if not isinstance(ranks, int) or isinstance(ranks, bool) or ranks < 1:
            yield f"{RANKS}: must be a number of ranks, not {ranks!r}"

    def process_count(self, args: Mapping[str, JsonValue], ranks: int) -> int:  # noqa: ARG002
        count = args[RANKS]
        assert isinstance(count, int), "`broken_args` lets nothing else through"
        return count

    def speculation(self, given: Given) -> JsonValue:
        drafts = given.env.get(DRAFTS, DEFAULT_DRAFTS)
        if drafts == "0":
            return None
        return {
            "method": "nextn",
            "num_speculative_tokens": int(drafts) if drafts.isdecimal() else drafts,
        }

    def prefix_caching(self, given: Given) -> bool:  # noqa: ARG002
        # The release has none: num_cached_tokens_gpu is always 0.
        return False
