"""Whether a host is suitable for an engine environment, checked before any download."""

from __future__ import annotations

import shutil
from pathlib import Path

from harness.errors import HostError
from harness.host.facts import HostFacts

PYTHONS = ("3.11", "3.12", "3.13")
"""The kit is tested on these; the locked engine environment is resolved for them."""


def check_python(version: str) -> None:
    """Raise HostError unless this Python is one that the locks are made for."""
    if ".".join(version.split(".")[:2]) not in PYTHONS:
        raise HostError(
            f"Python {version} is not supported: the locked environment is made for "
            f"Python {PYTHONS[0]} to {PYTHONS[-1]}",
            usually="nox was installed with a different Python than intended",
            next_step=f"python{PYTHONS[1]} -m pip install nox, "
            f"then python{PYTHONS[1]} -m nox -s reproduce",
        )


def check_cpu(facts: HostFacts) -> None:
    """Raise HostError unless vLLM's CPU build can run here."""
    if facts.machine != "x86_64":
        raise HostError(
            f"this machine is {facts.machine}: vLLM's CPU build is locked for x86_64 only",
            usually="the smoke suite was started on an Arm machine",
            next_step="run it on an x86_64 machine with AVX2",
        )
    if "avx2" not in facts.cpu_flags:
        raise HostError(
            f"the CPU ({facts.cpu}) has no AVX2, which vLLM's CPU build needs",
            usually="an old CPU, or a virtual machine that hides its features",
            next_step="check with: grep -c avx2 /proc/cpuinfo",
        )


def check_space(folder: Path, needed: int, purpose: str) -> None:
    """Raise HostError unless ``needed`` bytes are free where ``folder`` is or will be."""
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    free = shutil.disk_usage(existing).free
    if free < needed:
        raise HostError(
            f"{free / 1e9:.1f} GB free at {existing}, but {purpose} needs {needed / 1e9:.1f} GB",
            usually="the disk is nearly full, or the folder is on a small disk",
            next_step=f"free some space (df -h {existing}), or set B300_REPRO_CACHE to a folder "
            "on another disk",
        )
