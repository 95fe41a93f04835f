"""Which RDMA devices are passed on, read from a fake sysfs with the kernel's layout."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.host.rdma import RdmaChoice, choose, read_rdma

FITTING = {"state": "4: ACTIVE", "link_layer": "InfiniBand"}


class Sysfs:
    """Builds devices as the kernel shows them: links to PCI devices, one file per fact."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def add(
        self,
        name: str,
        *,
        pci: str,
        driver: str = "mlx5_core",
        ports: tuple[dict[str, str], ...] = (FITTING,),
        verbs: str | None = None,
        vpd: bytes = b"\x82\x0eConnectX-8",
    ) -> None:
        device = self.root / "devices" / pci
        device.mkdir(parents=True)
        (device / "vpd").write_bytes(vpd)
        drivers = self.root / "bus" / "pci" / "drivers" / driver
        drivers.mkdir(parents=True, exist_ok=True)
        (device / "driver").symlink_to(drivers)
        folder = self.root / "class" / "infiniband" / name
        for number, facts in enumerate(ports, start=1):
            port = folder / "ports" / str(number)
            port.mkdir(parents=True)
            for key, value in facts.items():
                (port / key).write_text(value + "\n")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "device").symlink_to(device)
        if verbs:
            node = self.root / "class" / "infiniband_verbs" / verbs
            node.mkdir(parents=True)
            (node / "ibdev").write_text(name + "\n")

    def choice(self) -> RdmaChoice:
        return choose(read_rdma(self.root))


@pytest.fixture
def sysfs(tmp_path: Path) -> Sysfs:
    return Sysfs(tmp_path)


def test_a_node_with_eight_cards_and_its_nvswitch_functions(sysfs: Sysfs) -> None:
    for number in range(12):
        management = number >= 8
        sysfs.add(
            f"mlx5_{number}",
            pci=f"0000:{number:02x}:00.0",
            verbs=f"uverbs{number}",
            vpd=b"\x82V0\x08SW_MNG" if management else b"\x82ConnectX-8",
        )
    choice = sysfs.choice()
    assert [device.name for device in choice.chosen] == [f"mlx5_{n}" for n in range(8)]
    assert choice.nodes[:2] == ("/dev/infiniband/rdma_cm", "/dev/infiniband/uverbs0")
    assert len(choice.nodes) == 9
    assert choice.env == {"NCCL_IB_HCA": "=" + ",".join(f"mlx5_{n}:1" for n in range(8))}
    assert dict(choice.left_out)["mlx5_11"] == "it manages the NVSwitches and is not a network"


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({"driver": "rdma_rxe"}, "its driver is rdma_rxe, but GPU-initiated networking needs"),
        ({"driver": "efa"}, "its driver is efa"),
        (
            {"ports": ({"state": "1: DOWN", "link_layer": "Ethernet"},)},
            "port 1 is DOWN: not cabled",
        ),
        ({"ports": ()}, "it has no port"),
        ({"ports": ({},)}, "port 1 is unknown"),
        ({"verbs": None}, "it has no uverbs node"),
    ],
)
def test_what_does_not_fit_is_left_out_with_its_reason(
    sysfs: Sysfs, facts: dict[str, object], reason: str
) -> None:
    sysfs.add("mlx5_0", **{"pci": "0000:01:00.0", "verbs": "uverbs0", **facts})  # type: ignore[arg-type]
    choice = sysfs.choice()
    assert choice.chosen == ()
    assert choice.nodes == ()
    assert choice.env == {}
    ((name, why),) = choice.left_out
    assert name == "mlx5_0"
    assert why.startswith(reason)
    assert list(choice.reasons()) == [f"mlx5_0: left out, {why}"]


def test_two_functions_of_one_card_are_not_fused(sysfs: Sysfs) -> None:
    for function in (0, 1):
        sysfs.add(f"mlx5_{function}", pci=f"0000:01:00.{function}", verbs=f"uverbs{function}")
    assert sysfs.choice().env == {
        "NCCL_IB_HCA": "=mlx5_0:1,mlx5_1:1",
        "NCCL_IB_MERGE_NICS": "0",
    }


def test_only_the_active_port_of_a_card_is_named(sysfs: Sysfs) -> None:
    down = {"state": "1: DOWN", "link_layer": "Ethernet"}
    sysfs.add("mlx5_0", pci="0000:01:00.0", verbs="uverbs0", ports=(down, FITTING))
    choice = sysfs.choice()
    assert choice.env == {"NCCL_IB_HCA": "=mlx5_0:2"}
    assert list(choice.reasons()) == [
        "mlx5_0 (uverbs0): passed through, mlx5_core, active, InfiniBand"
    ]


def test_numbers_are_sorted_as_numbers(sysfs: Sysfs) -> None:
    for number in (10, 9, 2):
        sysfs.add(f"mlx5_{number}", pci=f"0000:{number:02x}:00.0", verbs=f"uverbs{number}")
    assert [device.name for device in sysfs.choice().chosen] == ["mlx5_2", "mlx5_9", "mlx5_10"]


def test_a_host_without_rdma(tmp_path: Path) -> None:
    assert choose(read_rdma(tmp_path)) == RdmaChoice(chosen=(), left_out=())
