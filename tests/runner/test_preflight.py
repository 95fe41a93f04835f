"""What is checked before anything large: read, compared, and reported with what to do."""

from __future__ import annotations

import dataclasses

import pytest

from harness.errors import HostError
from harness.host.facts import GIB, Gpu
from harness.host.rdma import RdmaChoice
from harness.runner.preflight import (
    Room,
    checks,
    remarks,
    require,
    without_rdma,
)
from harness.runtime.docker_engine import DockerFacts
from tests.conftest import FACTS, QuietProgress
from tests.runtime.test_container import PLANNED
from tests.suite.test_plan import planned

SUITE = "deepseek-v41-flash-8xb300"
B300 = dataclasses.replace(
    FACTS,
    gpus=tuple(
        Gpu(index=index, name="NVIDIA B300 SXM6 AC", memory_mib=275040, driver="590.48.01")
        for index in range(8)
    ),
)
ENGINE = DockerFacts(
    version="28.0", storage="overlay2", data_root="/data", runtimes=("nvidia", "runc"), cdi=False
)
ROOM = Room(disk=int(700e9), model=0, memory=2000 * GIB, shm=1000 * GIB)


def failing(**changes: object) -> list[str]:
    """Return the names of what does not fit after one change to a fitting host."""
    given = {"facts": B300, "engine": ENGINE, "room": ROOM, **changes}
    found = checks(planned(SUITE), **given)  # type: ignore[arg-type]
    return [check.name for check in found if not check.fits]


def test_the_published_host_fits() -> None:
    assert failing() == []


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"engine": dataclasses.replace(ENGINE, runtimes=("runc",))}, "GPU containers"),
        ({"facts": dataclasses.replace(B300, gpus=B300.gpus[:7])}, "GPUs"),
        (
            {
                "facts": dataclasses.replace(
                    B300,
                    gpus=tuple(dataclasses.replace(gpu, driver="570.1") for gpu in B300.gpus),
                )
            },
            "NVIDIA driver",
        ),
        ({"room": dataclasses.replace(ROOM, disk=int(100e9))}, "disk"),
        ({"room": dataclasses.replace(ROOM, memory=500 * GIB)}, "memory"),
        ({"room": dataclasses.replace(ROOM, shm=64 * GIB)}, "/dev/shm"),
    ],
)
def test_one_thing_that_lacks_is_found(changes: dict[str, object], name: str) -> None:
    assert failing(**changes) == [name]


def test_cdi_serves_as_well() -> None:
    assert failing(engine=dataclasses.replace(ENGINE, runtimes=("runc",), cdi=True)) == []


def test_what_is_downloaded_already_needs_no_room() -> None:
    assert failing(room=dataclasses.replace(ROOM, disk=int(160e9), model=int(510e9))) == []


def test_this_machine_is_refused_with_everything_that_lacks() -> None:
    bare = dataclasses.replace(ENGINE, runtimes=("runc",))
    small = Room(disk=int(60e9), model=0, memory=24 * GIB, shm=12 * GIB)
    progress = QuietProgress()
    with pytest.raises(HostError) as caught:
        require(list(checks(planned(SUITE), FACTS, bare, small)), progress)
    message = caught.value.render()
    assert caught.value.exit_code == 3
    for text in (
        "GPU containers",
        "8x NVIDIA B300",
        "580 or newer",
        "600 GiB",
        "200 GiB",
        "660 GB",
    ):
        assert text in message
    assert "nvidia-ctk runtime configure" in message
    assert "GPUs: no GPU (needed: 8x NVIDIA B300)" in message
    assert progress.lines == []


def test_smoke_suite_needs_nothing_of_it() -> None:
    bare = dataclasses.replace(ENGINE, runtimes=("runc",))
    assert list(checks(planned("smoke"), FACTS, bare, Room(disk=1, model=0, memory=1, shm=1))) == []


def test_older_driver_is_remarked_for_deepinfer_alone() -> None:
    old = dataclasses.replace(
        B300, gpus=tuple(dataclasses.replace(gpu, driver="580.126.09") for gpu in B300.gpus)
    )
    assert len(list(remarks(planned(SUITE), old))) == 1
    assert list(remarks(planned(SUITE, only=("vllm",)), old)) == []
    assert list(remarks(planned(SUITE), B300)) == []


def test_without_rdma_only_what_needs_it_is_refused() -> None:
    none = RdmaChoice(chosen=(), left_out=(("mlx5_0", "port 1 is DOWN: not cabled"),))
    error = without_rdma(planned(SUITE), none)
    assert error is not None
    assert error.what.startswith("deepinfer needs an RDMA device")
    assert error.exit_code == 3
    assert "port 1 is DOWN" in error.what
    assert "nox -s reproduce -- --only vllm" in error.next_step
    assert "--only deepinfer" not in error.next_step
    assert without_rdma(planned(SUITE, only=("vllm",)), none) is None
    assert without_rdma(planned(SUITE), PLANNED.rdma) is None
    alone = without_rdma(planned(SUITE, only=("deepinfer",)), none)
    assert alone is not None
    assert "--only" not in alone.next_step
