"""What this machine is, and what is said if it does not fit."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from harness.errors import HostError
from harness.host.facts import parse_gpus, read_host
from harness.host.fit import check_cpu, check_python, check_space
from harness.suite.model import Hardware
from tests.conftest import FACTS

B300 = "".join(f"{index}, NVIDIA B300 SXM6 AC, 275040, 590.48.01\n" for index in range(8))
EIGHT_B300 = Hardware(gpu_name_prefix="NVIDIA B300", gpu_count=8)


def test_gpus_are_read() -> None:
    gpus = parse_gpus(B300)
    assert len(gpus) == 8
    assert (gpus[7].index, gpus[7].name, gpus[7].driver) == (7, "NVIDIA B300 SXM6 AC", "590.48.01")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n",
        "No devices were found\n",
        "0, NVIDIA B300 SXM6 AC, [N/A], 590.48.01\n",
    ],
)
def test_what_is_no_gpu_is_not_one(text: str) -> None:
    assert parse_gpus(text) == ()


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        (B300, True),
        (B300.replace("B300", "B200"), False),
        ("".join(B300.splitlines(keepends=True)[:7]), False),
        (B300 + "8, NVIDIA L4, 24000, 590.48.01\n", False),
        ("", False),
    ],
)
def test_suite_is_chosen_by_host(text: str, fits: bool) -> None:
    assert dataclasses.replace(FACTS, gpus=parse_gpus(text)).matches(EIGHT_B300) is fits


def test_this_machine_can_be_read() -> None:
    reading = read_host()
    assert len(reading.facts.host_id) == 8
    assert reading.facts.cores >= 1
    assert reading.facts.memory_gib > 0
    assert "processor" in reading.raw["cpuinfo.txt"]


@pytest.mark.parametrize("version", ["3.11.7", "3.12.0", "3.13.1"])
def test_pythons_that_fit(version: str) -> None:
    check_python(version)


@pytest.mark.parametrize("version", ["3.10.9", "3.14.0", "3.1.1"])
def test_pythons_that_do_not_fit(version: str) -> None:
    with pytest.raises(HostError, match=f"Python {version} is not supported") as caught:
        check_python(version)
    assert caught.value.exit_code == 3
    assert "pip install nox" in caught.value.next_step


def test_arm_and_old_cpus_are_refused() -> None:
    check_cpu(FACTS)
    with pytest.raises(HostError, match="this machine is aarch64"):
        check_cpu(dataclasses.replace(FACTS, machine="aarch64"))
    with pytest.raises(HostError, match="has no AVX2"):
        check_cpu(dataclasses.replace(FACTS, cpu_flags=frozenset({"sse4_2"})))


def test_space_is_looked_up_where_a_folder_will_be(tmp_path: Path) -> None:
    check_space(tmp_path / "not" / "yet", 1, "nothing")
    with pytest.raises(HostError, match=r"everything needs 1000000000\.0 GB"):
        check_space(tmp_path / "not" / "yet", 10**18, "everything")
