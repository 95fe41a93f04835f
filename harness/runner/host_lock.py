"""One run at a time on a host: two would share its cores, GPUs and memory, and measure each other.

The lock is the kernel's (flock through filelock), so it ends with its process, however that ends.
A file next to it says who holds it; that file is left behind only by a run that was killed, or that
could not end what it started.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import filelock

from harness.errors import HostError
from harness.files import remove_file, write_json
from harness.runtime.base import RuntimeName


def default_lock() -> Path:
    """Return the lock that all clones and users of this host share."""
    return Path(tempfile.gettempdir()) / "b300-repro.lock"


@dataclass(frozen=True)
class Holder:
    """Who holds the host."""

    pid: int
    run: str
    runtime: RuntimeName
    """Where to look for what it started."""


@dataclass
class HostLock:
    """The lock while it is held."""

    path: Path
    killed: Holder | None
    """The previous holder, if it did not release the lock."""
    leftovers: bool
    """Whether something that a run started may still be running: then the holder's file is kept."""

    @property
    def holder_file(self) -> Path:
        """The file that says who holds the host."""
        return _holder_file(self.path)

    def describe(self, run: Path, runtime: RuntimeName) -> None:
        """Record for which run the host is held."""
        write_json(self.holder_file, asdict(Holder(os.getpid(), str(run), runtime)))


@contextlib.contextmanager
def hold_host(path: Path) -> Iterator[HostLock]:
    """Hold the host within the block.

    Raises:
        HostError: another run holds it; with its pid and directory.
    """
    lock = filelock.FileLock(path, mode=0o666)
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout as error:
        holder = _read(path)
        who = f"process {holder.pid}, run {holder.run}" if holder else "another run"
        raise HostError(
            f"this host is held by {who}",
            usually="a run is in progress in another terminal, or another user started one",
            next_step=f"wait for it, or check: ps -p {holder.pid}" if holder else "wait for it",
        ) from error
    killed = _read(path)
    held = HostLock(path, killed, leftovers=killed is not None)
    try:
        yield held
    finally:
        try:
            if not held.leftovers:
                remove_file(held.holder_file)
        finally:
            lock.release()


def _holder_file(path: Path) -> Path:
    return path.with_suffix(".holder.json")


def _read(path: Path) -> Holder | None:
    try:
        return Holder(**json.loads(_holder_file(path).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
