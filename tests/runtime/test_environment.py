"""How the engine environment is made, with pip replaced: what is printed, kept and tried next."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from harness.clock import SystemClock
from harness.errors import HostError, ImageError
from harness.process import Owner
from harness.runtime.environment import Environment, ensure
from tests.conftest import IMAGE, Kit

REPORT = {
    "install": [
        {
            "metadata": {"name": "torch", "version": "2.13.0+cpu"},
            "download_info": {
                "url": "file:///somewhere/torch-2.13.0%2Bcpu-cp311.whl",
                "archive_info": {"hashes": {"sha256": "ab" * 32}},
            },
        }
    ]
}


@pytest.fixture
def made(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> Environment:
    """An environment that does not exist yet, whose steps are shell lines that leave a trace."""
    environment = Environment(IMAGE, kit.site.images, kit.folder / "other-cache")
    folder, report = environment.folder, json.dumps(REPORT)
    python = f"python{sys.version_info.major}.{sys.version_info.minor}"

    def step(name: str, more: str = "true") -> tuple[str, ...]:
        return ("sh", "-c", f"echo {name} >> {kit.folder}/trace; {more}")

    venv = (
        f"mkdir -p {folder}/bin {folder}/lib/{python}/site-packages; "
        f"printf '#!/bin/sh\\n' > {folder}/bin/vllm; chmod +x {folder}/bin/vllm"
    )
    write = f"echo '{report}' > {folder}/torch.report.json"
    steps = {
        "venv": step("venv", venv),
        "locked": step("locked"),
        "torch": step("torch", write),
        "torch-cuda": step("torch-cuda", write),
    }
    monkeypatch.setattr(Environment, "steps", lambda self: steps)
    return environment


def make(environment: Environment, kit: Kit, *, rebuild: bool = False) -> dict[str, object]:
    clock = SystemClock()
    owner = Owner(f"test{kit.folder}", kit.folder / "processes.jsonl", clock)
    return dict(
        ensure(environment, owner=owner, clock=clock, progress=kit.progress, rebuild=rebuild)
    )


def trace(kit: Kit) -> list[str]:
    return (kit.folder / "trace").read_text().split()


def break_step(monkeypatch: pytest.MonkeyPatch, environment: Environment, name: str) -> None:
    broken = {**environment.steps(), name: ("sh", "-c", "echo no matching distribution; exit 1")}
    monkeypatch.setattr(Environment, "steps", lambda self: broken)


def test_environment_is_made_once_and_its_torch_recorded(made: Environment, kit: Kit) -> None:
    first = make(made, kit)
    assert first["torch_build"] == "cpu"
    assert first["torch"] == [
        {
            "name": "torch",
            "version": "2.13.0+cpu",
            "file": "torch-2.13.0+cpu-cp311.whl",
            "sha256": "ab" * 32,
        }
    ]
    (shim,) = made.folder.glob("lib/python3*/site-packages/made-up.dist-info/METADATA")
    assert shim.read_text() == "Name: made-up\n"
    assert make(made, kit) == first
    assert trace(kit) == ["venv", "locked", "torch"]
    make(made, kit, rebuild=True)
    assert trace(kit) == ["venv", "locked", "torch"] * 2


def test_without_a_cpu_build_the_size_of_the_other_is_said_first(
    made: Environment, kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_step(monkeypatch, made, "torch")
    assert make(made, kit)["torch_build"] == "cuda"
    said = next(index for index, line in enumerate(kit.progress.lines) if "about 3 GB" in line)
    assert said < kit.progress.lines.index("install torch, CUDA build")


def test_failed_installation_shows_pips_last_lines_and_is_tried_again(
    made: Environment, kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        break_step(patch, made, "locked")
        with pytest.raises(ImageError, match="no matching distribution") as caught:
            make(made, kit)
    assert caught.value.exit_code == 4
    assert made.complete() is None
    assert make(made, kit)["torch_build"] == "cpu"


def test_too_little_space_is_said_before_anything_is_downloaded(
    made: Environment, kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.runtime.environment.CPU_BYTES", 10**18)
    with pytest.raises(HostError, match="the engine's environment needs"):
        make(made, kit)
    assert not (kit.folder / "trace").exists()


def test_another_lock_is_another_environment(made: Environment, kit: Kit) -> None:
    before = made.folder
    lock = Path(kit.site.images.root / IMAGE / "requirements.lock")
    lock.write_text(lock.read_text() + "more==1\n")
    assert made.folder != before
