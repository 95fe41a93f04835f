"""Which RDMA devices an engine is given: read from sysfs, chosen by rule, each with its reason.

DeepInfer reads Engram rows through NCCL's GPU-initiated networking of the GDAKI kind, which uses
only NVIDIA's mlx5 devices and only active ports (NCCL 2.30 transport/net_ib/gin.cc and init.cc).
An HGX baseboard also shows mlx5 functions that manage its NVSwitches and are not networks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

DRIVER = "mlx5_core"
ACTIVE = "ACTIVE"
MANAGEMENT_MARK = b"SW_MNG"
"""In the PCI vital product data of functions that manage NVSwitches."""

SYSFS = Path("/sys")


@dataclass(frozen=True, kw_only=True)
class Port:
    """One port of a device; the state as the kernel writes it, without its number."""

    number: int
    state: str
    link_layer: str


@dataclass(frozen=True, kw_only=True)
class RdmaDevice:
    """One entry of /sys/class/infiniband. ``uverbs`` is the node that programs open."""

    name: str
    uverbs: str | None
    driver: str
    pci: str
    ports: tuple[Port, ...]
    management: bool

    @property
    def active_ports(self) -> tuple[Port, ...]:
        """Ports that carry traffic."""
        return tuple(port for port in self.ports if port.state == ACTIVE)


@dataclass(frozen=True, kw_only=True)
class RdmaChoice:
    """The devices that are passed through, and why each of the others is not."""

    chosen: tuple[RdmaDevice, ...]
    left_out: tuple[tuple[str, str], ...]
    probed: Mapping[str, str] = field(default_factory=dict)
    """What a probe found to be needed on this host, in addition to `env`'s own values or instead
    of them."""

    @property
    def nodes(self) -> tuple[str, ...]:
        """Device nodes for a container: one for each device, and the connection manager's."""
        if not self.chosen:
            return ()
        verbs = (f"/dev/infiniband/{device.uverbs}" for device in self.chosen)
        return ("/dev/infiniband/rdma_cm", *verbs)

    @property
    def env(self) -> dict[str, str]:
        """What NCCL is told: exactly these ports, and not to fuse two ports into one device.

        GPU-initiated networking does not work on fused devices (NCCL user guide, device API).
        """
        if not self.chosen:
            return {}
        ports = ",".join(
            f"{device.name}:{port.number}" for device in self.chosen for port in device.active_ports
        )
        unfused = {"NCCL_IB_MERGE_NICS": "0"} if self.dual_port else {}
        return {"NCCL_IB_HCA": f"={ports}", **unfused, **self.probed}

    @property
    def dual_port(self) -> bool:
        """Return whether two chosen ports belong to one card: two ports, or two PCI functions."""
        cards = [device.pci.rpartition(".")[0] for device in self.chosen]
        several = any(len(device.active_ports) > 1 for device in self.chosen)
        return several or len(set(cards)) < len(cards)

    def reasons(self) -> Iterator[str]:
        """Yield one line for each device of the host."""
        for device in self.chosen:
            layers = ", ".join(sorted({port.link_layer for port in device.active_ports}))
            yield f"{device.name} ({device.uverbs}): passed through, {DRIVER}, active, {layers}"
        for name, reason in self.left_out:
            yield f"{name}: left out, {reason}"
        for name, value in self.probed.items():
            yield f"{name}={value}: found by the probe"


def choose(devices: list[RdmaDevice]) -> RdmaChoice:
    """Choose among ``devices``; the choice is empty if none is suitable."""
    reasons = {device.name: _why_not(device) for device in devices}
    return RdmaChoice(
        chosen=tuple(device for device in devices if reasons[device.name] is None),
        left_out=tuple((name, reason) for name, reason in reasons.items() if reason is not None),
    )


def _why_not(device: RdmaDevice) -> str | None:
    if device.driver != DRIVER:
        return f"its driver is {device.driver}, but GPU-initiated networking needs {DRIVER}"
    if device.management:
        return "it manages the NVSwitches and is not a network"
    if not device.active_ports:
        states = ", ".join(f"port {port.number} is {port.state}" for port in device.ports)
        return f"{states or 'it has no port'}: not cabled, or its link is down"
    if device.uverbs is None:
        return "it has no uverbs node: is ib_uverbs loaded?"
    return None


def read_rdma(sysfs: Path = SYSFS) -> list[RdmaDevice]:
    """Read all RDMA devices of the host, in the order of their names."""
    verbs = {
        _text(path / "ibdev"): path.name
        for path in sorted((sysfs / "class" / "infiniband_verbs").glob("uverbs*"))
    }
    folders = (sysfs / "class" / "infiniband").glob("*")
    return [_device(folder, verbs.get(folder.name)) for folder in sorted(folders, key=_order)]


def _order(folder: Path) -> tuple[str, int]:
    """Sort mlx5_10 after mlx5_9."""
    letters = folder.name.rstrip("0123456789")
    digits = folder.name[len(letters) :]
    return letters, int(digits or 0)


def _device(folder: Path, uverbs: str | None) -> RdmaDevice:
    device = (folder / "device").resolve()
    ports = sorted((folder / "ports").glob("*"), key=lambda port: int(port.name))
    return RdmaDevice(
        name=folder.name,
        uverbs=uverbs,
        driver=(device / "driver").resolve().name,
        pci=device.name,
        ports=tuple(
            Port(
                number=int(port.name),
                # "4: ACTIVE"
                state=_text(port / "state").rpartition(":")[2].strip() or "unknown",
                link_layer=_text(port / "link_layer") or "unknown",
            )
            for port in ports
        ),
        management=MANAGEMENT_MARK in _bytes(device / "vpd"),
    )


def _text(path: Path) -> str:
    return _bytes(path).decode(errors="replace").strip()


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
