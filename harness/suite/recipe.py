"""The schema of a recipe: one engine in one configuration, with a reason for every setting."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, JsonValue, model_validator

from harness.settings.base import EngineSettings
from harness.settings.registry import SETTINGS, DriveName, EngineName
from harness.validation import Count, Identifier, Reason, Strict, nearest

Capability = Literal["IPC_LOCK", "SYS_PTRACE", "SYS_NICE"]


class Sizing(Strict):
    """Settings that follow from a workload's lengths; each sizing is an engine start of its own."""

    workloads: Annotated[tuple[Identifier, ...], Field(min_length=1, strict=False)]
    args: dict[str, JsonValue]
    why: str


class Container(Strict):
    """What a recipe's containers are given, and nothing else."""

    gpus: Literal["all", "nvidia.com/gpu=all"] | None = None
    """By NVIDIA's container toolkit, or by a CDI name."""
    ipc: Literal["host"] | None = None
    shm_gib: Count | None = None
    """Size of a /dev/shm of its own, in GiB, where ``ipc`` does not give it the host's."""
    network: Literal["host"] | None = None
    user: Literal["root"] | None = None
    ulimits: dict[str, int] = Field(default_factory=dict)
    capabilities: Annotated[tuple[Capability, ...], Field(strict=False)] = ()
    rdma: bool = False
    caches: Annotated[tuple[str, ...], Field(strict=False)] = ()
    """Writable folders inside the container that outlive it: JIT and autotune results."""

    def for_client(self) -> Container:
        """Return what the engine's client gets: only its network and its limit of open sockets."""
        sockets = {name: limit for name, limit in self.ulimits.items() if name == "nofile"}
        return Container(network=self.network, ulimits=sockets)

    def settings(self) -> dict[str, JsonValue]:
        """Return what is set, by name."""
        return self.model_dump(mode="json", exclude_defaults=True)


class RecipeFile(Strict):
    """``<recipe>.yaml``: one engine in one configuration, with the reason for each setting.

    With ``extends``, the file holds only its differences from another recipe of the suite; a
    setting given as null is removed.
    """

    schema_version: Literal[1]
    extends: Identifier | None = None
    title: str
    engine: EngineName
    image: Identifier
    drive: DriveName | None = None
    """The drive mode, for an engine that has several."""
    ranks: Count = 1
    """Independent replicas, for an engine that can be started as several."""
    args: dict[str, JsonValue] = Field(default_factory=dict)
    env: dict[str, str] = Field(default_factory=dict)
    sizing: Annotated[tuple[Sizing, ...], Field(strict=False)] = ()
    container: Container | None = None
    why: dict[str, Reason] = Field(default_factory=dict)

    @property
    def settings(self) -> EngineSettings:
        """The rules of the engine's settings, and what they mean."""
        return SETTINGS[self.engine]

    @model_validator(mode="after")
    def _settings_fit_the_engine(self) -> Self:
        for msg in self.settings.broken(self):
            raise ValueError(msg)
        for sizing in self.sizing:
            for msg in self.settings.broken_args(sizing.args):
                raise ValueError(msg)
        sized = [name for sizing in self.sizing for name in sizing.workloads]
        if twice := sorted({name for name in sized if sized.count(name) > 1}):
            msg = f"sized twice: {', '.join(twice)}"
            raise ValueError(msg)
        return self

    @model_validator(mode="after")
    def _every_setting_has_a_reason(self) -> Self:
        needs = self.container.settings() if self.container else {}
        settings = {*self.args, *self.env, *(f"container.{name}" for name in needs)}
        settings |= {"drive"} if self.drive else set()
        settings |= {"ranks"} if self.ranks > 1 else set()
        unknown = sorted(set(self.why) - settings)
        if missing := sorted(settings - set(self.why)):
            near = nearest(missing[0], unknown)
            msg = f"no reason given under `why` for: {', '.join(missing)}{near}"
            raise ValueError(msg)
        if unknown:
            msg = f"`why` explains what is not set: {', '.join(unknown)}"
            raise ValueError(msg)
        return self
