"""Whether this host can carry out a plan, checked before anything large is fetched or started."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from harness.console import Progress
from harness.engines.registry import ENGINES, engine_of
from harness.errors import HostError
from harness.host.facts import GIB, HostFacts, major
from harness.host.rdma import RdmaChoice
from harness.runtime.docker_engine import DockerFacts
from harness.suite.plan import Plan


@dataclass(frozen=True, kw_only=True)
class Room:
    """What is free on this host, in bytes. ``model`` is what is already downloaded."""

    disk: int
    model: int
    memory: int
    shm: int


@dataclass(frozen=True, kw_only=True)
class Check:
    """One thing that was checked: what was read, what is needed, and what to do if it is short."""

    name: str
    read: str
    needed: str
    fits: bool
    next_step: str

    def line(self) -> str:
        """Return it as one line."""
        return f"{self.name}: {self.read} (needed: {self.needed})"


def read_room(cache: Path, given: Path | None) -> Room:
    """Read what is free where images and models are kept; ``given`` is the user's own model."""
    model = given or cache / "models"
    existing = next(path for path in (cache, *cache.parents) if path.exists())
    shm = Path("/dev/shm")
    return Room(
        disk=shutil.disk_usage(existing).free,
        model=sum(path.stat().st_size for path in model.rglob("*") if path.is_file()),
        memory=psutil.virtual_memory().total,
        shm=shutil.disk_usage(shm).total if shm.exists() else 0,
    )


def checks(plan: Plan, facts: HostFacts, engine: DockerFacts, room: Room) -> Iterator[Check]:
    """Yield what ``plan`` needs of a host, each compared with what was read."""
    if any(session.container and session.container.gpus for session in plan.sessions):
        yield Check(
            name="GPU containers",
            read=f"runtimes {', '.join(engine.runtimes)}{', CDI' if engine.cdi else ''}",
            needed="NVIDIA's container toolkit, registered with Docker",
            fits=engine.gpu_toolkit,
            next_step="install nvidia-container-toolkit, then: "
            "sudo nvidia-ctk runtime configure --runtime=docker && sudo systemctl restart docker",
        )
    if plan.hardware:
        wanted = f"{plan.hardware.gpu_count}x {plan.hardware.gpu_name_prefix}"
        yield Check(
            name="GPUs",
            read=facts.gpu_summary(),
            needed=wanted,
            fits=facts.matches(plan.hardware),
            next_step="nvidia-smi; or print what would run: python -m harness plan --dry-run",
        )
    if plan.needs is None:
        return
    needs = plan.needs
    drivers = sorted({gpu.driver for gpu in facts.gpus})
    yield Check(
        name="NVIDIA driver",
        read=", ".join(drivers) or "none",
        needed=f"{needs.driver} or newer",
        fits=bool(drivers) and all(major(each) >= major(needs.driver) for each in drivers),
        next_step="install a newer driver; see CUDA's table of driver versions",
    )
    yield Check(
        name="disk",
        read=f"{room.disk / 1e9:,.0f} GB free, {room.model / 1e9:,.0f} GB of the model present",
        needed=f"{needs.disk_bytes / 1e9:,.0f} GB",
        fits=room.disk + room.model >= needs.disk_bytes,
        next_step="free some space, or set B300_REPRO_CACHE to a folder on a larger disk",
    )
    yield Check(
        name="memory",
        read=f"{room.memory / GIB:,.0f} GiB",
        needed=f"{needs.host_memory_gib:,} GiB",
        fits=room.memory >= needs.host_memory_gib * GIB,
        next_step="use a larger node: " + needs.why.host_memory_gib,
    )
    yield Check(
        name="/dev/shm",
        read=f"{room.shm / GIB:,.0f} GiB",
        needed=f"{needs.shm_gib:,} GiB",
        fits=room.shm >= needs.shm_gib * GIB,
        next_step=f"sudo mount -o remount,size={needs.shm_gib}G /dev/shm",
    )


def remarks(plan: Plan, facts: HostFacts) -> Iterator[str]:
    """Yield what may hurt a run on this host without stopping it."""
    for name in dict.fromkeys(session.engine for session in plan.sessions):
        yield from ENGINES[name].remarks(facts)


def require(found: list[Check], progress: Progress) -> None:
    """Show every check that passes; refuse the host if one does not.

    Raises:
        HostError: with every check that failed, and what to do about each.
    """
    for check in found:
        if check.fits:
            progress.say(f"  {check.line()}")
    failed = [check for check in found if not check.fits]
    if failed:
        raise HostError(
            "this host does not meet the requirements:\n"
            + "\n".join(check.line() for check in failed),
            usually="another host was meant, or something was not installed or mounted yet",
            next_step="\n".join(f"{check.name}: {check.next_step}" for check in failed),
        )


def without_rdma(plan: Plan, choice: RdmaChoice) -> HostError | None:
    """Return why sessions that need an RDMA device cannot run here; None where they can."""
    session = next((each for each in plan.sessions if each.needs_rdma), None)
    if session is None or choice.chosen:
        return None
    reasons = "\n".join(choice.reasons()) or "/sys/class/infiniband is empty"
    return HostError(
        f"{session.recipe} needs an RDMA device, and this host has no suitable one:\n{reasons}",
        usually=engine_of(session).rdma or "its recipe asks for an mlx5 device with an active port",
        next_step=f"ibstat; modprobe mlx5_ib ib_uverbs{others_run(plan)}",
    )


def others_run(plan: Plan) -> str:
    """Return how to run the recipes of ``plan`` that need no RDMA, if it has any."""
    recipes = dict.fromkeys(each.recipe for each in plan.sessions if not each.needs_rdma)
    if not recipes:
        return ""
    options = " ".join(f"--only {recipe}" for recipe in recipes)
    return f"; without RDMA: nox -s reproduce -- {options}"
