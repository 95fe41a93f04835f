"""The probe for RDMA: what it would run, in what order, and how its outcomes are distinguished."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from harness.clock import SystemClock
from harness.engines.gin_probe import (
    MEANINGS,
    Outcome,
    attempts,
    outcome_of,
    probe_command,
    probe_job,
)
from harness.errors import HostError
from harness.host.rdma import RdmaChoice, RdmaDevice
from harness.process import Owner
from harness.results.run_directory import RunDirectory
from harness.runner.context import Context
from harness.runner.dry_run import whole_run
from harness.runner.probe_rdma import probe_rdma
from harness.runner.steps import ProbeRdma
from harness.runtime.base import Command
from tests.conftest import QuietProgress
from tests.in_process import Done, FixedClock
from tests.runtime.test_container import DEVICE
from tests.suite.test_plan import planned

PLAN = planned("deepseek-v41-flash-8xb300", only=("deepinfer-step",))
SESSION = PLAN.sessions[0]


def device(number: int, pci: str) -> RdmaDevice:
    return dataclasses.replace(DEVICE, name=f"mlx5_{number}", uverbs=f"uverbs{number}", pci=pci)


SINGLE = RdmaChoice(chosen=(device(0, "0000:18:00.0"), device(1, "0000:3a:00.0")), left_out=())
DUAL = RdmaChoice(chosen=(device(0, "0000:18:00.0"), device(1, "0000:18:00.1")), left_out=())

# The asserts are DeepEP's (deepinfer-ep 2.5.0); the frame around them is its host assert's.
RECORDED: list[tuple[int | None, str, Outcome]] = [
    (0, "", "works"),
    (
        1,
        'NCCL_GIN_TYPE_NONE and "NCCL GIN is unavailable. This is usually due to a network "',
        "gin-unavailable",
    ),
    (
        1,
        'ginSupport[NCCL_GIN_TYPE_GDAKI] and "NCCL GDAKI is unavailable for this communicator."',
        "gdaki-unavailable",
    ),
    (1, 'local_fd >= 0 and "`pidfd_getfd` failed"', "pidfd-refused"),
    (1, 'pidfd >= 0 and "`pidfd_open` failed"', "pidfd-refused"),
    (1, "rank 3 did not reach 'ready' within 60 s (8 ranks)", "hangs"),
    (None, "", "hangs"),
    (1, "RuntimeError: the probe read wrong rows: [0.0, 0.0]", "wrong-rows"),
    (1, "CUDA error: system not yet initialized", "unknown"),
]


@pytest.mark.parametrize(("code", "text", "outcome"), RECORDED)
def test_outcomes_are_told_apart(code: int | None, text: str, outcome: Outcome) -> None:
    assert outcome_of(code, text) == outcome
    assert MEANINGS[outcome]


def test_attempts_in_order() -> None:
    assert [each.name for each in attempts(SINGLE)] == ["as-chosen", "merge-nics-0", "one-hca"]
    # On dual-port cards fused devices are off from the start.
    assert [each.name for each in attempts(DUAL)] == ["as-chosen", "one-hca"]
    assert attempts(SINGLE)[-1].env == {"NCCL_IB_MERGE_NICS": "0", "NCCL_IB_HCA": "=mlx5_0:1"}
    assert [each.name for each in attempts(RdmaChoice(chosen=SINGLE.chosen[:1], left_out=()))] == [
        "as-chosen",
        "merge-nics-0",
    ]


def test_probe_runs_before_any_weights_in_the_engines_own_container() -> None:
    command = probe_command(
        SESSION, attempts(SINGLE)[1], Path("/run/probe/job.json"), Path("/code")
    )
    assert command.image == "deepinfer"
    assert command.container == SESSION.container
    assert command.env["NCCL_IB_MERGE_NICS"] == "0"
    assert command.reads == (Path("/code"), Path("/run/probe/job.json"))
    assert command.writes == (Path("/run/probe"),)


def test_probe_is_eight_ranks_and_at_most_a_minute() -> None:
    job = probe_job(SESSION, Path("/run/probe"))
    assert job["ranks"] == 8
    assert job["waves"] == []
    assert job["limits"] == {"start_s": 60.0, "wave_s": 60.0, "stop_s": 10.0}


class Probes:
    """A runtime whose probes end as scripted, by the attempt's folder."""

    name = "docker"

    def __init__(self, ends: Mapping[str, tuple[int | None, str]]) -> None:
        self.ends = ends
        self.tried: list[str] = []
        self.started: list[Command] = []

    def start(self, command: Command, *, log: Path, owner: Owner) -> Done:
        self.tried.append(log.parent.name)
        self.started.append(command)
        code, text = self.ends[log.parent.name]
        log.write_text(text)
        return Done(code, log)  # type: ignore[arg-type]


def context(tmp_path: Path, runtime: Probes) -> Context:
    clock = FixedClock()
    return Context(
        plan=PLAN,
        directory=RunDirectory(tmp_path),
        runtime=runtime,  # type: ignore[arg-type]
        owner=Owner("test", tmp_path / "ledger", SystemClock()),
        clock=clock,
        progress=QuietProgress(),
        model_folder=tmp_path,
    )


UNAVAILABLE = (1, "NCCL GIN is unavailable")


def test_first_way_that_works_is_kept(tmp_path: Path) -> None:
    runtime = Probes({"as-chosen": UNAVAILABLE, "merge-nics-0": (0, "")})
    probed = probe_rdma(context(tmp_path, runtime), SESSION, SINGLE)
    assert runtime.tried == ["as-chosen", "merge-nics-0"]
    assert probed.env["NCCL_IB_MERGE_NICS"] == "0"
    assert probed.env["NCCL_IB_HCA"] == "=mlx5_0:1,mlx5_1:1"
    assert "NCCL_IB_MERGE_NICS=0: found by the probe" in list(probed.reasons())


def test_first_attempt_is_the_one_that_a_dry_run_prints(tmp_path: Path) -> None:
    runtime = Probes({"as-chosen": (0, "")})
    made = context(tmp_path, runtime)
    probe_rdma(made, SESSION, SINGLE)
    (step,) = [
        each
        for each in whole_run(made.planned, port=1, own_model=False)
        if isinstance(each, ProbeRdma)
    ]
    assert runtime.started == [step.command]
    assert {path: json.loads(path.read_text()) for path in step.jobs} == step.jobs


def test_when_nothing_works_the_evidence_is_named(tmp_path: Path) -> None:
    runtime = Probes(dict.fromkeys(("as-chosen", "merge-nics-0", "one-hca"), UNAVAILABLE))
    with pytest.raises(HostError) as caught:
        probe_rdma(context(tmp_path, runtime), SESSION, SINGLE)
    assert runtime.tried == ["as-chosen", "merge-nics-0", "one-hca"]
    assert caught.value.exit_code == 3
    for name in runtime.tried:
        assert str(tmp_path / "rdma-probe" / name / "launcher.log") in caught.value.what
    assert "--privileged" in caught.value.next_step


def test_what_no_device_can_change_is_not_tried_again(tmp_path: Path) -> None:
    runtime = Probes({"as-chosen": (1, "`pidfd_getfd` failed")})
    with pytest.raises(HostError, match="pidfd-refused"):
        probe_rdma(context(tmp_path, runtime), SESSION, SINGLE)
    assert runtime.tried == ["as-chosen"]


def test_probe_that_hangs_is_ended(tmp_path: Path) -> None:
    runtime = Probes(dict.fromkeys(("as-chosen", "one-hca"), (None, "")))
    with pytest.raises(HostError, match="hangs"):
        probe_rdma(context(tmp_path, runtime), SESSION, DUAL)


def test_probed_choice_is_what_containers_get() -> None:
    probed = dataclasses.replace(SINGLE, probed={"NCCL_IB_HCA": "=mlx5_0:1"})
    assert probed.env["NCCL_IB_HCA"] == "=mlx5_0:1"
