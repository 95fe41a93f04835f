"""The schema of a recipe: one engine in one configuration, with a reason for every setting."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, JsonValue, model_validator

from harness.suite.model import Identifier, Strict

Capability = Literal["IPC_LOCK", "SYS_PTRACE", "SYS_NICE"]

RESERVED_FLAGS = ("--model", "--host", "--port", "--served-model-name")
"""Flags of a server that the kit sets itself; a recipe cannot."""


class Sizing(Strict):
    """Settings that follow from a workload's lengths; each sizing is an engine start of its own."""

    workloads: Annotated[tuple[Identifier, ...], Field(min_length=1, strict=False)]
    args: dict[str, JsonValue]
    why: str


class Container(Strict):
    """What a recipe's containers are given; nothing that is not named here."""

    gpus: Literal["all"] | None = None
    ipc: Literal["host"] | None = None
    network: Literal["host"] | None = None
    user: Literal["root"] | None = None
    ulimits: dict[str, int] = Field(default_factory=dict)
    capabilities: Annotated[tuple[Capability, ...], Field(strict=False)] = ()
    rdma: bool = False
    caches: Annotated[tuple[str, ...], Field(strict=False)] = ()
    """Writable folders inside the container that outlive it: JIT and autotune results."""

    def settings(self) -> dict[str, JsonValue]:
        """Return what is set, by name."""
        return self.model_dump(mode="json", exclude_defaults=True)


class RecipeFile(Strict):
    """``<recipe>.yaml``: one engine in one configuration, with the reason for each setting.

    With ``extends``, the file holds only its differences from another recipe of the suite; a
    setting given as null is taken away.
    """

    schema_version: Literal[1]
    extends: Identifier | None = None
    title: str
    engine: Literal["vllm-server", "vllm-offline", "deepinfer"]
    image: Identifier
    drive: Literal["generate", "step"] | None = None
    args: dict[str, JsonValue] = Field(default_factory=dict)
    env: dict[str, str] = Field(default_factory=dict)
    sizing: Annotated[tuple[Sizing, ...], Field(strict=False)] = ()
    container: Container | None = None
    why: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _drive_belongs_to_deepinfer(self) -> Self:
        if (self.engine == "deepinfer") != (self.drive is not None):
            msg = "`drive` is given for the engine deepinfer, and for no other"
            raise ValueError(msg)
        return self

    @model_validator(mode="after")
    def _nothing_fakes_the_measurement(self) -> Self:
        if reserved := sorted(set(self.args) & set(RESERVED_FLAGS)):
            msg = f"the kit sets this itself: {', '.join(reserved)}"
            raise ValueError(msg)
        # These route tokens to made-up experts: a profiling aid, not the model.
        if forced := sorted(name for name in self.env if name.startswith("DEEPINFER_FORCE_")):
            msg = f"this replaces the model's routing by a made-up one: {', '.join(forced)}"
            raise ValueError(msg)
        return self

    @model_validator(mode="after")
    def _every_setting_has_a_reason(self) -> Self:
        needs = self.container.settings() if self.container else {}
        settings = {*self.args, *self.env, *(f"container.{name}" for name in needs)}
        if missing := sorted(settings - set(self.why)):
            msg = f"no reason given under `why` for: {', '.join(missing)}"
            raise ValueError(msg)
        if unknown := sorted(set(self.why) - settings):
            msg = f"`why` explains what is not set: {', '.join(unknown)}"
            raise ValueError(msg)
        return self
