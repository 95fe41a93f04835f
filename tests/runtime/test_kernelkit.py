"""The register-spill check of DeepInfer's image: it reads what cuobjdump really prints."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from harness.runtime.images import images_folder
from tests.conftest import RESOURCES

RECORDED = RESOURCES / "recorded" / "cuobjdump-13.1.80-resource-usage.txt"
PROGRAM = images_folder() / "deepinfer" / "kernelkit.py"


@pytest.fixture
def kernelkit() -> ModuleType:
    spec = importlib.util.spec_from_file_location("kernelkit", PROGRAM)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def cuda(tmp_path: Path) -> Path:
    """A CUDA_HOME whose cuobjdump prints the recorded text, with a test's changes."""
    tool = tmp_path / "cuda" / "bin" / "cuobjdump"
    tool.parent.mkdir(parents=True)
    tool.write_text(f"#!/bin/sh\ncat {tmp_path}/printed.txt\n")
    tool.chmod(0o755)
    (tmp_path / "printed.txt").write_text(RECORDED.read_text())
    (tmp_path / "library.so").touch()
    return tmp_path


def check(cuda: Path) -> subprocess.CompletedProcess[str]:
    env = {"PATH": os.environ["PATH"], "CUDA_HOME": str(cuda / "cuda")}
    argv = [sys.executable, str(PROGRAM), str(cuda / "library.so")]
    return subprocess.run(argv, env=env, capture_output=True, text=True, check=False)


def test_recorded_kernels_are_read(kernelkit: ModuleType) -> None:
    found = kernelkit.parse(RECORDED.read_text())
    assert len(found) == RECORDED.read_text().count(" Function ")
    spilled = [name for name, spills in found if spills]
    assert spilled
    assert all(name.startswith(kernelkit.EXEMPT) for name in spilled)


def test_kernels_of_cutlass_are_exempt(cuda: Path) -> None:
    done = check(cuda)
    assert done.returncode == 0, done.stderr
    assert "0 of them not exempt" in done.stdout


def test_own_kernel_that_spills_fails_the_build(cuda: Path) -> None:
    printed = cuda / "printed.txt"
    printed.write_text(printed.read_text().replace("STACK:0 ", "STACK:16 "))
    done = check(cuda)
    assert done.returncode == 1
    assert "_ZN5sm100" in done.stderr


def test_nothing_to_check_is_no_pass(cuda: Path) -> None:
    (cuda / "printed.txt").write_text("")
    assert "names no kernel" in check(cuda).stderr
    (cuda / "cuda" / "bin" / "cuobjdump").unlink()
    assert "no cuobjdump" in check(cuda).stderr


def test_setup_py_is_answered(
    kernelkit: ModuleType, cuda: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As flashmla's setup.py calls it, with a path that exists only for editable installs."""
    monkeypatch.setenv("CUDA_HOME", str(cuda / "cuda"))
    call = kernelkit.check_kernel_reg_spill_in_artifact
    options = {"quiet": True, "suppress_checking_env_var": "FLASH_MLA_SKIP_REG_SPILL_CHECK"}
    assert call(str(cuda / "nowhere.so"), **options) == []
    assert call(str(cuda / "library.so"), **options)
