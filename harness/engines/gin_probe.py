"""The RDMA probe as plain data: its command, what is tried and in what order, its outcomes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import JsonValue

from harness.host.rdma import RdmaChoice
from harness.runtime.base import Command, inside_command
from harness.suite.plan import Session

PROBE_SECONDS = 60.0

Outcome = Literal[
    "works",
    "gin-unavailable",
    "gdaki-unavailable",
    "pidfd-refused",
    "hangs",
    "wrong-rows",
    "unknown",
]

# DeepEP's own words (deepinfer-ep 2.5.0: csrc/kernels/comm/context.cpp, symmetric.hpp), and ours.
TEXTS: tuple[tuple[str, Outcome], ...] = (
    (r"NCCL GIN is unavailable", "gin-unavailable"),
    (r"NCCL GDAKI is unavailable", "gdaki-unavailable"),
    (r"`pidfd_(?:open|getfd)` failed", "pidfd-refused"),
    (r"the probe read wrong rows", "wrong-rows"),
    (r"did not reach 'ready' within", "hangs"),
)

MEANINGS: Mapping[Outcome, str] = {
    "works": "every rank read a row from every other rank",
    "gin-unavailable": "NCCL finds no network for GPU-initiated access: no active mlx5 port that "
    "it may use, a fused dual-port NIC, or an rdma-core in the image that is older than the NIC",
    "gdaki-unavailable": "NCCL finds a network, but not of the GDAKI kind: it needs nvidia_peermem "
    "or DMA-BUF (kernel 6.1 or newer), and mlx5 devices only",
    "pidfd-refused": "ranks may not take each other's handles: SYS_PTRACE is not in effect, "
    "because the container does not run as root, or a security policy forbids it",
    "hangs": "ports do not reach each other: every NIC reads from every other, so the rails must "
    "be connected, and an MTU of 1500 is known to hang",
    "wrong-rows": "data arrived in the wrong place: do not trust this node",
    "unknown": "something else failed: the log says what",
}


@dataclass(frozen=True)
class Attempt:
    """One way of telling NCCL which devices to use."""

    name: str
    env: Mapping[str, str]


AS_CHOSEN = Attempt("as-chosen", {})


def attempts(choice: RdmaChoice) -> list[Attempt]:
    """Return what is tried, in order: as chosen, without fused NICs, one NIC alone."""
    tried = [AS_CHOSEN]
    unfused = {"NCCL_IB_MERGE_NICS": "0"}
    if not choice.dual_port:
        tried.append(Attempt("merge-nics-0", unfused))
    first = choice.chosen[0]
    hca = f"={first.name}:{first.active_ports[0].number}"
    if len(choice.chosen) > 1:
        tried.append(Attempt("one-hca", {**unfused, "NCCL_IB_HCA": hca}))
    return tried


def probe_job(session: Session, folder: Path) -> dict[str, JsonValue]:
    """Return the job for `harness.inside.launcher`."""
    return {
        "backend": "harness.inside.gin_probe:GinProbe",
        "gpu_per_rank": True,
        "drive": "step",
        "ranks": session.ranks,
        "engine": {},
        "model": "",
        "folder": str(folder),
        "events": str(folder / "events.jsonl"),
        "limits": {"start_s": PROBE_SECONDS, "wave_s": PROBE_SECONDS, "stop_s": 10.0},
        "waves": [],
    }


def probe_command(session: Session, attempt: Attempt, job: Path, code: Path) -> Command:
    """Return the probe's command: the session's own image and grants, no model."""
    return inside_command(
        "launcher",
        job,
        code,
        role="driver",
        image=session.image,
        env={**session.env, **attempt.env},
        container=session.container,
        writes=(job.parent,),
    )


def outcome_of(exit_code: int | None, text: str) -> Outcome:
    """Read how a probe ended from its exit code (None: it was stopped) and its output."""
    if exit_code == 0:
        return "works"
    for pattern, outcome in TEXTS:
        if re.search(pattern, text):
            return outcome
    return "hangs" if exit_code is None else "unknown"
