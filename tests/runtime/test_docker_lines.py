"""Container lines grant what the recipe names, and nothing else."""

from __future__ import annotations

import contextlib
import io
import itertools
import os
import re
import shlex

import pytest

from harness.cli.main import main

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
            role = "probe" if "rdma-probe" in line else role
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
    # Nothing on the host is writable except the caches.
    writable = [mount for mount in values(argv, "--mount") if not mount.endswith(",readonly")]
    assert [mount.partition("target=")[2] for mount in writable] == [
        "/root/.cache/flashinfer", "/root/.cache/vllm"
    ]  # fmt: skip


def test_deepinfer_gets_rdma_and_three_capabilities(lines: dict[str, list[str]]) -> None:
    argv = lines["driver b300-repro/deepinfer"]
    assert values(argv, "--cap-add") == ["IPC_LOCK", "SYS_PTRACE", "SYS_NICE"]
    assert all(device.startswith("/dev/infiniband/") for device in values(argv, "--device"))
    assert values(argv, "--user") == ["root"]
    read_only = [mount for mount in values(argv, "--mount") if mount.endswith(",readonly")]
    assert {mount.split(",")[1].rpartition("/")[2] for mount in read_only} == {
        "code", "prompts", "deepseek-ai--DeepSeek-V4.1-Flash-1017"
    }  # fmt: skip


def test_client_is_granted_its_sockets_alone(lines: dict[str, list[str]]) -> None:
    argv = lines["client vllm/vllm-openai"]
    for flag in ("--gpus", "--ipc", "--cap-add", "--device"):
        assert values(argv, flag) == []
    assert values(argv, "--cap-drop") == ["ALL"]
    assert values(argv, "--user") == [f"{os.getuid()}:{os.getgid()}"]
    # One socket for each request.
    assert values(argv, "--ulimit") == ["nofile=1048576:1048576"]
