"""Container lines grant what the recipe names, and nothing else."""

from __future__ import annotations

import contextlib
import io
import itertools
import re
import shlex
from pathlib import Path

import pytest

from harness.cli import main
from harness.errors import UsageError
from harness.runtime.images import images_folder, load_images, pin_of, run_reference

SUITE = "deepseek-v41-flash-8xb300"


@pytest.fixture(scope="module")
def lines() -> dict[str, list[str]]:
    """The published suite's dry run: each container's arguments, by role and image."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        assert main(["plan", SUITE, "--dry-run"]) == 0
    found: dict[str, list[str]] = {}
    for line in output.getvalue().splitlines():
        if "docker run" in line:
            argv = shlex.split(line.partition(" > ")[0])
            role = argv[argv.index("--name") + 1].removeprefix("b300-repro-")
            image = next(part for part in argv if part.startswith(("vllm/", "b300-repro/")))
            found.setdefault(f"{role} {image.split('@')[0].split(':')[0]}", argv)
    return found


def values(argv: list[str], flag: str) -> list[str]:
    return [after for before, after in itertools.pairwise(argv) if before == flag]


def test_no_container_is_privileged(lines: dict[str, list[str]]) -> None:
    assert lines
    assert all("--privileged" not in argv for argv in lines.values())
    assert all(not any("TOKEN" in part for part in argv) for argv in lines.values())


def test_server_is_run_by_digest_with_its_grants(lines: dict[str, list[str]]) -> None:
    argv = lines["server vllm/vllm-openai"]
    image = next(part for part in argv if part.startswith("vllm/"))
    assert re.fullmatch(r"vllm/vllm-openai@sha256:[0-9a-f]{64}", image)
    assert argv[argv.index(image) + 1 : argv.index(image) + 2] == ["serve"]
    assert values(argv, "--entrypoint") == ["vllm"]
    assert values(argv, "--gpus") == ["all"]
    assert values(argv, "--ipc") == ["host"]
    assert values(argv, "--ulimit") == ["nofile=1048576:1048576", "memlock=-1:-1"]
    assert values(argv, "--cap-add") == []
    assert values(argv, "--device") == []
    assert "HF_HUB_OFFLINE=1" in values(argv, "--env")
    model = [mount for mount in values(argv, "--mount") if "/models/" in mount]
    assert [mount.endswith(",readonly") for mount in model] == [True]


def test_deepinfer_gets_rdma_and_three_capabilities(lines: dict[str, list[str]]) -> None:
    argv = lines["driver b300-repro/deepinfer"]
    assert values(argv, "--cap-add") == ["IPC_LOCK", "SYS_PTRACE", "SYS_NICE"]
    assert all(device.startswith("/dev/infiniband/") for device in values(argv, "--device"))
    assert values(argv, "--user") == ["root"]


def test_client_is_granted_its_sockets_alone(lines: dict[str, list[str]]) -> None:
    argv = lines["client vllm/vllm-openai"]
    for flag in ("--gpus", "--ipc", "--cap-add", "--device", "--user"):
        assert values(argv, flag) == []
    # One socket for each request.
    assert values(argv, "--ulimit") == ["nofile=1048576:1048576"]


def test_lock_of_images_is_whole() -> None:
    images = load_images(images_folder())
    assert images.bases["vllm-openai"].reference.endswith(
        "@sha256:a4a4c0437bf7240089da5f08aa370c4aee17ae5290f7a3b468825ee26c4c3a6b"
    )
    assert [source.name for source in images.images["deepinfer"].sources] == [
        "deepinfer", "deepinfer-ep", "deepinfer-gemm", "deepinfer-flashmla"
    ]  # fmt: skip
    pins = {name: pin_of(name, images_folder()) for name in images.images}
    assert len(set(pins.values())) == len(pins)
    assert run_reference("deepinfer", images_folder()).startswith("b300-repro/deepinfer:")


def test_unknown_image_names_the_nearest() -> None:
    with pytest.raises(UsageError, match="did you mean 'deepinfer'"):
        pin_of("depinfer", images_folder())


def test_a_digest_is_a_digest(tmp_path: Path) -> None:
    text = (images_folder() / "images.lock.yaml").read_text()
    (tmp_path / "images.lock.yaml").write_text(text.replace("sha256:c1c9", "sha256:c1c", 1))
    with pytest.raises(UsageError, match=r"images.lock.yaml:9: bases.vllm-openai.index"):
        load_images(tmp_path)
