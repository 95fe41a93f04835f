"""The schema of a recipe: one engine in one configuration, with a reason for every setting."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, JsonValue, model_validator

from harness.validation import Count, Identifier, Reason, Strict

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
        """Return what the engine's client gets: its network and its open sockets, no more."""
        sockets = {name: limit for name, limit in self.ulimits.items() if name == "nofile"}
        return Container(network=self.network, ulimits=sockets)

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
    ranks: Count = 1
    """Processes of an in-process vLLM, independent replicas; DeepInfer's follow from its args."""
    args: dict[str, JsonValue] = Field(default_factory=dict)
    env: dict[str, str] = Field(default_factory=dict)
    sizing: Annotated[tuple[Sizing, ...], Field(strict=False)] = ()
    container: Container | None = None
    why: dict[str, Reason] = Field(default_factory=dict)

    @property
    def process_count(self) -> int:
        """How many processes the engine is started as."""
        data_parallel = self.args.get("data_parallel_size")
        return data_parallel if isinstance(data_parallel, int) else self.ranks

    @model_validator(mode="after")
    def _drive_belongs_to_deepinfer(self) -> Self:
        if (self.engine == "deepinfer") != (self.drive is not None):
            msg = "`drive` is given for the engine deepinfer, and for no other"
            raise ValueError(msg)
        return self

    @model_validator(mode="after")
    def _ranks_belong_to_replicas(self) -> Self:
        if self.ranks > 1 and self.engine != "vllm-offline":
            msg = "`ranks` is given for the engine vllm-offline, and for no other"
            raise ValueError(msg)
        return self

    @model_validator(mode="after")
    def _settings_fit_the_engine(self) -> Self:
        for section in (self.args, *(sizing.args for sizing in self.sizing)):
            for name, value in section.items():
                dashed = name.startswith("--")
                if dashed == (self.engine == "deepinfer"):
                    kind = "a keyword argument" if self.engine == "deepinfer" else "a flag with --"
                    msg = f"{name}: a setting of {self.engine} is {kind}"
                    raise ValueError(msg)
                if value is None or (dashed and value is False):
                    msg = f"{name}: a flag is true or is left out"
                    raise ValueError(msg)
        ranks = self.args.get("data_parallel_size")
        if self.engine == "deepinfer" and not (isinstance(ranks, int) and ranks >= 1):
            msg = "deepinfer needs data_parallel_size: one process is started for each rank"
            raise ValueError(msg)
        sized = [name for sizing in self.sizing for name in sizing.workloads]
        if twice := sorted({name for name in sized if sized.count(name) > 1}):
            msg = f"sized twice: {', '.join(twice)}"
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
        settings |= {"drive"} if self.drive else set()
        settings |= {"ranks"} if self.ranks > 1 else set()
        if missing := sorted(settings - set(self.why)):
            msg = f"no reason given under `why` for: {', '.join(missing)}"
            raise ValueError(msg)
        if unknown := sorted(set(self.why) - settings):
            msg = f"`why` explains what is not set: {', '.join(unknown)}"
            raise ValueError(msg)
        return self
