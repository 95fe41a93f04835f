"""What this machine is, with the raw text that each fact was read from."""

from __future__ import annotations

import csv
import hashlib
import platform
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import psutil

from harness.suite.model import Hardware

NVIDIA_SMI = (
    "nvidia-smi",
    "--query-gpu=index,name,memory.total,driver_version",
    "--format=csv,noheader,nounits",
)
GIB = 2**30


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """One GPU as the driver names it; memory in MiB."""

    index: int
    name: str
    memory_mib: int
    driver: str

    @property
    def driver_major(self) -> int:
        """The driver's first number; 0 if it does not begin with one."""
        return major(self.driver)


@dataclass(frozen=True, kw_only=True)
class HostFacts:
    """One host, identified by an id and not by its name: reports are published."""

    host_id: str
    machine: str
    cpu: str
    cpu_flags: frozenset[str]
    cores: int
    memory_gib: float
    system: str
    kernel: str
    python: str
    gpus: tuple[Gpu, ...]

    def matches(self, hardware: Hardware) -> bool:
        """Return whether this is the host that a suite was made for."""
        fitting = [gpu for gpu in self.gpus if gpu.name.startswith(hardware.gpu_name_prefix)]
        return len(fitting) == hardware.gpu_count == len(self.gpus)

    def gpu_summary(self) -> str:
        """Return the GPUs as ``8x NVIDIA B300 SXM6 AC``."""
        names = {gpu.name: sum(other.name == gpu.name for other in self.gpus) for gpu in self.gpus}
        return ", ".join(f"{count}x {name}" for name, count in names.items()) or "no GPU"

    def summary(self) -> str:
        """Return the host in one line."""
        size = f"{self.cores} cores, {self.memory_gib:.0f} GiB"
        return f"{self.cpu}, {size}, {self.gpu_summary()}"


@dataclass(frozen=True)
class HostReading:
    """The facts, and the raw texts by file name."""

    facts: HostFacts
    raw: dict[str, str]


def read_host() -> HostReading:
    """Read this host; anything that cannot be read is left out, never guessed."""
    raw = {
        "cpuinfo.txt": _text(Path("/proc/cpuinfo")),
        "meminfo.txt": _text(Path("/proc/meminfo")),
        "os-release.txt": _text(Path("/etc/os-release")),
        "nvidia-smi.csv": _nvidia_smi(),
    }
    cpu = _cpu_fields(raw["cpuinfo.txt"])
    identity = _text(Path("/etc/machine-id")).strip() or platform.node()
    facts = HostFacts(
        host_id=hashlib.sha256(f"b300-repro {identity}".encode()).hexdigest()[:8],
        machine=platform.machine(),
        cpu=cpu.get("model name", "unknown CPU"),
        cpu_flags=frozenset(cpu.get("flags", "").split()),
        cores=len(psutil.Process().cpu_affinity() or [0]),
        memory_gib=psutil.virtual_memory().total / GIB,
        system=_os_name(raw["os-release.txt"]),
        kernel=platform.release(),
        python=platform.python_version(),
        gpus=parse_gpus(raw["nvidia-smi.csv"]),
    )
    return HostReading(facts, {name: text for name, text in raw.items() if text})


def parse_gpus(text: str) -> tuple[Gpu, ...]:
    """Read what `NVIDIA_SMI` prints, one GPU a line; other lines are its error messages."""
    rows = [[field.strip() for field in row] for row in csv.reader(text.splitlines())]
    return tuple(
        Gpu(index=int(row[0]), name=row[1], memory_mib=int(row[2]), driver=row[3])
        for row in rows
        if len(row) == 4 and row[0].isdigit() and row[2].isdigit()
    )


def _nvidia_smi() -> str:
    if shutil.which(NVIDIA_SMI[0]) is None:
        return ""
    try:
        done = subprocess.run(NVIDIA_SMI, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"nvidia-smi failed: {error}\n"
    return done.stdout + done.stderr


def _cpu_fields(cpuinfo: str) -> dict[str, str]:
    """Return the first processor's fields."""
    first = cpuinfo.split("\n\n")[0]
    pairs = (line.partition(":") for line in first.splitlines())
    return {key.strip(): value.strip() for key, _, value in pairs}


def _os_name(os_release: str) -> str:
    for line in os_release.splitlines():
        if line.startswith("PRETTY_NAME="):
            return line.partition("=")[2].strip('"')
    return platform.system()


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def major(version: str) -> int:
    """Return a version's first number; 0 if it does not begin with one."""
    digits = version.partition(".")[0]
    return int(digits) if digits.isdecimal() else 0
