"""DeepInfer: one process for each GPU, driven from inside (deepinfer 0.1.0)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from pydantic import JsonValue

from harness.document import Code, Line
from harness.engines.base import InProcessEngine
from harness.host.facts import HostFacts
from harness.settings.base import EngineSettings
from harness.settings.deepinfer import DeepInferSettings
from harness.suite.plan import Session

PTX_DRIVER = 590
"""CUDA 13.1's own driver: older ones run what was compiled ahead of time, but not PTX (CUDA's notes
on minor version compatibility), and DeepInfer compiles kernels when it starts."""

DEPARTS = "departs from the default"
"""How a recipe marks a setting that is not the engine's own default; a contract test checks it."""


class DeepInfer(InProcessEngine):
    """All ranks step together, and read each other's Engram rows over RDMA."""

    settings: ClassVar[EngineSettings] = DeepInferSettings()
    backend = "harness.inside.deepinfer_rank:DeepInferRank"
    gpu_per_rank = True
    driving: ClassVar[Line] = (
        Code("LLM.generate"),
        " is the call that the package offers; ",
        Code("step"),
        (
            " adds the same requests and steps the engine by hand, so that no decode steps run "
            "before the first prefill. The table shows output tok/s, the duration of the whole "
            "wave, and the engine steps of one rank."
        ),
    )
    rdma = (
        "DeepInfer reads Engram rows through the NIC even on one node: it needs an mlx5 device "
        "with an active port"
    )

    def job(self, session: Session) -> dict[str, JsonValue]:
        return dict(session.args)

    def remarks(self, facts: HostFacts) -> Iterator[str]:
        old = [gpu.driver for gpu in facts.gpus if gpu.driver_major < PTX_DRIVER]
        if old:
            yield (
                f"driver {old[0]} is older than {PTX_DRIVER}, CUDA 13.1's own: DeepInfer compiles "
                "kernels when it starts, and PTX of 13.1 may not load"
            )

    def notes(self, session: Session) -> Iterator[Line]:
        yield from _queueing(session)
        for name in {**session.args, **session.env}:
            why = session.why[name]
            if why.startswith(DEPARTS):
                yield ("DeepInfer ", Code(name), f" {why}.")
        yield (
            "DeepInfer computes all prompts of a burst before it decodes any of them: its TTFT is "
            "queueing within the burst, whereas vLLM mixes prefill and decoding. Several drafted "
            "tokens share one timestamp, so no time between tokens is given for it."
        )
        if session.drive == "generate":
            yield (
                "Through ",
                Code("LLM.generate"),
                (
                    ", tokens have no timestamps: TTFT and TPOT are not measured, and the wave "
                    "ends when the call returns."
                ),
            )


def _queueing(session: Session) -> Iterator[Line]:
    """Yield how many requests of a cell run concurrently, if others have to wait."""
    limit = session.args.get("max_num_seqs")
    if not isinstance(limit, int):
        return
    at_once = limit * session.ranks
    for workload, requests in {cell.workload: cell.requests for cell in session.cells}.items():
        if (requests.concurrency or 0) > at_once:
            yield (
                (
                    f"{session.recipe}/{workload}: of {requests.concurrency:,} requests, "
                    f"{at_once:,} run concurrently ({session.ranks} ranks x {limit}, "
                ),
                Code("max_num_seqs"),
                "); the others queue.",
            )
