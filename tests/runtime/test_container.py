"""A container's two forms agree, and grant what the recipe names and nothing else."""

from __future__ import annotations

import itertools
import os
import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.host.rdma import Port, RdmaChoice, RdmaDevice
from harness.runtime.base import Command
from harness.runtime.container import Containers
from harness.runtime.images import Images, images_folder
from harness.suite.recipe import Container

DEVICE = RdmaDevice(
    name="mlx5_0",
    uverbs="uverbs0",
    driver="mlx5_core",
    pci="0000:18:00.0",
    ports=(Port(number=1, state="ACTIVE", link_layer="Ethernet"),),
    management=False,
)
PLANNED = Containers(
    images=Images(images_folder()),
    cache=Path("/cache"),
    rdma=RdmaChoice(chosen=(DEVICE,), left_out=()),
)
GRANTED = st.builds(
    Container,
    gpus=st.sampled_from([None, "all", "nvidia.com/gpu=all"]),
    ipc=st.sampled_from([None, "host"]),
    shm_gib=st.none() | st.integers(1, 300),
    user=st.sampled_from([None, "root"]),
    ulimits=st.dictionaries(st.sampled_from(["nofile", "memlock"]), st.integers(-1, 1048576)),
    capabilities=st.sets(st.sampled_from(["IPC_LOCK", "SYS_PTRACE", "SYS_NICE"])).map(tuple),
    rdma=st.booleans(),
)


def command(granted: Container | None, role: str = "driver", **more: object) -> Command:
    plain: dict[str, object] = {"argv": ("python3", "-V"), "container": granted, **more}
    return Command(role=role, image="deepinfer", **plain)  # type: ignore[arg-type]


def values(line: str, flag: str) -> list[str]:
    return [after for before, after in itertools.pairwise(shlex.split(line)) if before == flag]


@given(granted=GRANTED)
def test_the_line_and_the_call_grant_the_same(granted: Container) -> None:
    spec = PLANNED.spec(command(granted), "name")
    line, call = spec.line(), spec.create_arguments()
    assert values(line, "--cap-add") == call["cap_add"] == list(granted.capabilities)
    assert [
        f"{device}:{device}:rwm" for device in values(line, "--device") if "=" not in device
    ] == (call["devices"])
    assert values(line, "--ulimit") == [
        f"{each['Name']}={each['Soft']}:{each['Hard']}" for each in call["ulimits"]
    ]
    assert values(line, "--ipc") == ([call["ipc_mode"]] if granted.ipc else [])
    assert ("shm_size" in call) == (granted.shm_gib is not None)
    assert values(line, "--user") == ([call["user"]] if granted.user else [])
    assert values(line, "--network") == [call["network_mode"]] == ["host"]
    assert ("device_requests" in call) == (granted.gpus is not None)
    assert "--privileged" not in line
    assert call["privileged"] is False


@pytest.mark.parametrize(
    ("gpus", "flag", "request_"),
    [
        ("all", "--gpus", {"Driver": "", "Count": -1, "Capabilities": [["gpu"]]}),
        ("nvidia.com/gpu=all", "--device", {"Driver": "cdi", "DeviceIDs": ["nvidia.com/gpu=all"]}),
    ],
)
def test_gpus_by_toolkit_or_cdi(gpus: str, flag: str, request_: dict[str, object]) -> None:
    spec = PLANNED.spec(command(Container.model_validate({"gpus": gpus})), "name")
    assert values(spec.line(), flag) == [gpus]
    assert spec.create_arguments()["device_requests"] == [request_]


def test_the_sdk_takes_the_call_as_it_is() -> None:
    """The real SDK turns the arguments into the engine's request; nothing is sent."""
    from docker.models import containers

    # The SDK has no public name for it, so its type stubs lack it.
    to_request = vars(containers)["_create_container_args"]

    granted = Container(gpus="all", ipc="host", ulimits={"memlock": -1, "nofile": 1048576},
                        capabilities=("IPC_LOCK",), rdma=True)  # fmt: skip
    call = PLANNED.spec(command(granted, reads=(Path("/model"),)), "name").create_arguments()
    request = to_request({"image": "sha256:00", "version": "1.41", **call})
    host = request["host_config"]
    assert host["DeviceRequests"] == [
        {"Driver": "", "Count": -1, "DeviceIDs": [], "Capabilities": [["gpu"]], "Options": {}}
    ]
    assert host["Ulimits"] == [
        {"Name": "memlock", "Soft": -1, "Hard": -1},
        {"Name": "nofile", "Soft": 1048576, "Hard": 1048576},
    ]
    assert host["CapAdd"] == ["IPC_LOCK"]
    assert [device["PathOnHost"] for device in host["Devices"]] == [
        "/dev/infiniband/rdma_cm",
        "/dev/infiniband/uverbs0",
    ]
    assert host["Mounts"][0] == {
        "Type": "bind", "Source": "/model", "Target": "/model", "ReadOnly": True
    }  # fmt: skip
    assert "Privileged" not in host


def test_tools_are_powerless_and_this_users() -> None:
    spec = PLANNED.spec(command(None, role="client"), "name")
    assert spec.user == f"{os.getuid()}:{os.getgid()}"
    assert values(spec.line(), "--cap-drop") == spec.create_arguments()["cap_drop"] == ["ALL"]
    assert values(spec.line(), "--security-opt") == ["no-new-privileges"]


def test_nccl_is_told_what_was_chosen() -> None:
    env = PLANNED.spec(command(Container(rdma=True)), "name").env
    assert env["NCCL_IB_HCA"] == "=mlx5_0:1"
    assert "NCCL_IB_HCA" not in PLANNED.spec(command(Container()), "name").env


def test_privileged_is_for_rdma_alone_and_only_when_asked() -> None:
    asked = Containers(
        images=PLANNED.images, cache=PLANNED.cache, rdma=PLANNED.rdma, privileged=True
    )
    assert "--privileged" in asked.spec(command(Container(rdma=True)), "name").line()
    assert "--privileged" not in asked.spec(command(Container()), "name").line()
    assert [asked.is_privileged(command(each)) for each in (Container(rdma=True), Container())] == [
        True,
        False,
    ]
    assert "--privileged" not in asked.spec(command(None, role="client"), "name").line()


def test_what_is_written_is_not_also_mounted_read_only() -> None:
    given = command(None, reads=(Path("/run/prompts/job.json"), Path("/model")),
                    writes=(Path("/run/prompts"),))  # fmt: skip
    mounts = PLANNED.spec(given, "name").mounts
    assert [(mount.source, mount.writable) for mount in mounts] == [
        ("/model", False),
        ("/run/prompts", True),
    ]


def test_no_token_reaches_a_container(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    spec = PLANNED.spec(command(Container()), "name")
    assert "hf_secret" not in spec.line() + str(spec.create_arguments())
    assert spec.env["HF_HUB_OFFLINE"] == "1"
