"""The locks are complete, hashed, and free of what would break the CPU build."""

from __future__ import annotations

import re

import pytest

from harness.runtime.images import ACCELERATOR_LOCK, LOCK, images_folder
from harness.runtime.locks import entries, split

FOLDER = images_folder() / "vllm-cpu"
WHOLE = """\
aiohttp==3.1 \\
    --hash=sha256:aa
networkx==1 ; python_full_version < '3.12' \\
    --hash=sha256:bb
networkx==2 ; python_full_version >= '3.12' \\
    --hash=sha256:cc
nvidia-cublas==13 ; sys_platform == 'linux' \\
    --hash=sha256:dd
torch==2.13.0 \\
    --hash=sha256:ee
torchvision==0.29 ; sys_platform == 'never' \\
    --hash=sha256:ff
"""


def test_split_keeps_every_variant_and_drops_what_is_switched_off() -> None:
    common, accelerator = split(WHOLE)
    assert [name for name, _ in entries(common)] == ["aiohttp", "networkx", "networkx"]
    assert [name for name, _ in entries(accelerator)] == ["nvidia-cublas", "torch"]
    assert "ff" not in common + accelerator


@pytest.mark.parametrize(
    "name", [f"vllm-cpu/{LOCK}", f"vllm-cpu/{ACCELERATOR_LOCK}", f"deepinfer/{LOCK}"]
)
def test_every_entry_is_pinned_and_hashed(name: str) -> None:
    found = entries((images_folder() / name).read_text())
    assert len(found) > 10
    for package, entry in found:
        assert re.match(rf"{re.escape(package)}(\[[^]]*\])?==\S+", entry), entry
        assert "--hash=sha256:" in entry


def test_committed_locks_are_split() -> None:
    common = {name for name, _ in entries((FOLDER / LOCK).read_text())}
    accelerator = {name for name, _ in entries((FOLDER / ACCELERATOR_LOCK).read_text())}
    assert "vllm-cpu" in common
    assert "torch" in accelerator
    assert not common & {"torch", "torchvision", "torchaudio", "torchcodec", "triton"}
    assert not {name for name in common if name.startswith(("nvidia-", "cuda-"))}


@pytest.mark.parametrize("folder", ["vllm-cpu", "deepinfer"])
def test_no_registry_is_named(folder: str) -> None:
    files = [path for path in (images_folder() / folder).rglob("*") if path.is_file()]
    assert files
    assert "://" not in "".join(path.read_text() for path in files)
