"""The lock of images: what decides an image's name, and which mistakes in it are found."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.runtime.images import Images, images_folder

LOCKED = Images(images_folder())


def test_lock_of_images_is_whole() -> None:
    assert LOCKED.base("vllm").reference.endswith(
        "@sha256:a4a4c0437bf7240089da5f08aa370c4aee17ae5290f7a3b468825ee26c4c3a6b"
    )
    assert {source.name for source in LOCKED.image("deepinfer").sources} == {
        "deepinfer", "deepinfer-ep", "deepinfer-gemm", "deepinfer-flashmla"
    }  # fmt: skip
    names = list(LOCKED.file.images)
    assert len({LOCKED.pin(name) for name in names}) == len(names)
    assert LOCKED.run_reference("deepinfer").startswith("b300-repro/deepinfer:")
    assert LOCKED.run_reference("vllm") == LOCKED.base("vllm").reference


def test_a_base_without_digest_is_named_by_its_tag() -> None:
    assert LOCKED.base("vllm-cpu").digest is None
    assert LOCKED.base("vllm-cpu").reference == "debian:bookworm-slim"


def test_a_replaced_base_is_another_pin() -> None:
    replaced = Images(images_folder(), {"cuda": "stand-in:1"})
    assert replaced.base_reference("deepinfer") == "stand-in:1"
    assert replaced.pin("deepinfer") != LOCKED.pin("deepinfer")
    assert replaced.pin("vllm") == LOCKED.pin("vllm")


def test_build_arguments_are_given_to_those_that_know_them() -> None:
    given = Images(images_folder(), arguments={"APT": "g++", "CUDA_VERSION": "13.3"})
    assert given.build_args("deepinfer") == {"APT": "g++", "CUDA_VERSION": "13.3"}
    assert given.build_args("vllm-cpu") == {}
    assert given.pin("deepinfer") != LOCKED.pin("deepinfer")
    assert given.pin("vllm-cpu") == LOCKED.pin("vllm-cpu")


def copy(folder: Path) -> Images:
    """Copy the lock, and one image's folder, to where they can be changed."""
    text = (images_folder() / "images.lock.yaml").read_text()
    (folder / "images.lock.yaml").write_text(text)
    (folder / "deepinfer").mkdir()
    for name in ("Dockerfile", "requirements.lock", "kernelkit.py"):
        (folder / "deepinfer" / name).write_text(f"{name}\n")
    return Images(folder)


@pytest.mark.parametrize("name", ["Dockerfile", "requirements.lock", "kernelkit.py"])
def test_every_file_of_the_folder_decides_the_pin(name: str, tmp_path: Path) -> None:
    images = copy(tmp_path)
    before = images.pin("deepinfer")
    (tmp_path / "deepinfer" / name).write_text("changed\n")
    assert images.pin("deepinfer") != before


@pytest.mark.parametrize("name", ["contract.json", "README.md"])
def test_what_tells_of_a_build_decides_none(name: str, tmp_path: Path) -> None:
    images = copy(tmp_path)
    before = images.pin("deepinfer")
    (tmp_path / "deepinfer" / name).write_text("from a build\n")
    assert images.pin("deepinfer") == before


def test_what_pip_compiles_decides_none(tmp_path: Path) -> None:
    images = copy(tmp_path)
    before = images.pin("deepinfer")
    compiled = tmp_path / "deepinfer" / "__pycache__" / "contract.cpython-311.pyc"
    compiled.parent.mkdir()
    compiled.write_bytes(b"compiled")
    assert images.pin("deepinfer") == before


def test_unknown_image_names_the_nearest() -> None:
    with pytest.raises(UsageError, match="did you mean 'deepinfer'"):
        LOCKED.pin("depinfer")


def test_a_lock_that_is_not_there_is_named(tmp_path: Path) -> None:
    images = copy(tmp_path)
    (tmp_path / "deepinfer" / "requirements.lock").unlink()
    with pytest.raises(UsageError, match=r"requirements.lock: no such file"):
        images.pin("deepinfer")


def test_a_digest_is_a_digest(tmp_path: Path) -> None:
    text = (images_folder() / "images.lock.yaml").read_text()
    (tmp_path / "images.lock.yaml").write_text(text.replace("sha256:c1c9", "sha256:c1c", 1))
    with pytest.raises(UsageError, match=r"images.lock.yaml:10: bases.vllm-openai.index"):
        _ = Images(tmp_path).file
