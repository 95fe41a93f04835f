"""A model's files as the hub describes them, and as they are on this host, by SHA-256."""

from __future__ import annotations

import concurrent.futures
from pathlib import Path
from typing import Literal

from harness.console import Progress
from harness.errors import ImageError
from harness.files import read_record, sha256_of, write_json
from harness.validation import Strict

HASH_THREADS = 8
HASH_BYTES_PER_S = 2e9


class HubFile(Strict):
    """A file as the hub describes it; only large files come with their SHA-256."""

    size: int
    sha256: str | None


class ModelLock(Strict):
    """A commit of a repository and all its files: what the hub said when it was first asked."""

    schema_version: Literal[1] = 1
    repository: str
    revision: str
    pinned: bool
    """Whether the suite names the revision; otherwise it was locked at the first download."""
    files: dict[str, HubFile]

    @property
    def bytes(self) -> int:
        """Size of all files."""
        return sum(each.size for each in self.files.values())


class Found(Strict):
    """A file as it is on this host; its mtime, in nanoseconds, shows whether it has changed."""

    size: int
    mtime_ns: int
    sha256: str


class Inventory(Strict):
    """What was hashed in a folder."""

    schema_version: Literal[1] = 1
    files: dict[str, Found]


def verify(folder: Path, lock: ModelLock, inventory: Path, progress: Progress) -> Inventory:
    """Hash every file of the lock except those that have not changed since they were hashed.

    Raises:
        ImageError: a file is not what the hub says it is.
    """
    known = read_record(inventory, Inventory).files if inventory.exists() else {}
    todo = {name for name in lock.files if not _unchanged(folder / name, known.get(name))}
    size = sum(lock.files[name].size for name in todo)
    found = {name: each for name, each in known.items() if name in lock.files}
    if todo:
        with (
            progress.step(
                f"verify {len(todo)} files of {lock.repository}",
                expected_s=size / HASH_BYTES_PER_S,
            ),
            concurrent.futures.ThreadPoolExecutor(HASH_THREADS) as pool,
        ):
            for name, each in pool.map(lambda name: (name, _hash(folder / name)), sorted(todo)):
                found[name] = each
                progress.tick()
    for name, each in found.items():
        wanted = lock.files[name]
        if each.size != wanted.size or wanted.sha256 not in (None, each.sha256):
            raise ImageError(
                f"{folder / name} is not the file in {lock.repository} at "
                f"{lock.revision[:12]}: {each.size} bytes, sha256 {each.sha256}; the hub says "
                f"{wanted.size} bytes, sha256 {wanted.sha256 or 'not stated'}",
                usually="its download was cut off, or the file was changed afterwards",
                next_step=f"rm {folder / name}, then run the same command again",
            )
    result = Inventory(files=found)
    write_json(inventory, result.model_dump(mode="json"))
    return result


def has_size(path: Path, wanted: HubFile) -> bool:
    """Return whether the file exists with the size that the hub reports."""
    return path.is_file() and path.stat().st_size == wanted.size


def _unchanged(path: Path, known: Found | None) -> bool:
    if known is None or not path.is_file():
        return False
    stat = path.stat()
    return (stat.st_size, stat.st_mtime_ns) == (known.size, known.mtime_ns)


def _hash(path: Path) -> Found:
    stat = path.stat()
    return Found(size=stat.st_size, mtime_ns=stat.st_mtime_ns, sha256=sha256_of(path))
