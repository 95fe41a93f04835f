"""The published model on this host: downloaded into a plain folder, locked, and verified.

A plain folder, not the hub's cache: the cache's snapshots are symlinks, which dangle once mounted
into a container. HF_TOKEN is used here and nowhere else.
"""

from __future__ import annotations

import contextlib
import os
import queue
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import filelock
from pydantic import JsonValue

from harness.clock import Clock
from harness.console import Progress
from harness.errors import HostError, ImageError, KitError
from harness.files import make_folder, read_record, write_json
from harness.host.fit import check_space
from harness.model.inventory import HubFile, ModelLock, has_size, verify
from harness.suite.model import HubModel

if TYPE_CHECKING:
    from huggingface_hub import HfApi

DOWNLOAD_BYTES_PER_S = 500e6
DOWNLOADS = 4
"""Files that are downloaded concurrently."""
POLL_SECONDS = 0.1
SAY_SECONDS = 60.0
REVISION = "main"
"""What is downloaded, and then locked, if the suite names no commit."""


def hub_folder(cache: Path, model: HubModel) -> Path:
    """Return where a model is kept below ``cache``."""
    return cache / "models" / model.repository.replace("/", "--")


@dataclass(frozen=True, kw_only=True)
class HubStore:
    """Models below ``cache``, each in a folder of its own next to its lock and its inventory."""

    cache: Path
    clock: Clock
    progress: Progress
    endpoint: str | None = None

    def folder(self, model: HubModel) -> Path:
        """Return where ``model`` is, or will be."""
        return hub_folder(self.cache, model)

    def ensure(self, model: HubModel, given: Path | None) -> tuple[Path, dict[str, JsonValue]]:
        """Download what is missing, verify every file, and return the folder and the evidence.

        ``given`` is a folder that the user already has: it is verified and never written to.

        Raises:
            HostError: too little space, or a folder that does not hold this model.
            ImageError: the hub does not answer, or a file is not what it said.
        """
        folder = given or self.folder(model)
        lock_path = self._beside(model, "lock.json")
        make_folder(lock_path.parent)
        with filelock.FileLock(self._beside(model, "busy")):
            lock = self._lock(model, lock_path)
            self._check_given(folder, lock) if given else self._download(folder, lock)
            found = verify(folder, lock, self._beside(model, "inventory.json"), self.progress)
        evidence: dict[str, JsonValue] = {
            "repository": lock.repository,
            "revision": lock.revision,
            "revision_from": "the suite" if lock.pinned else "locked at the first download",
            "bytes": lock.bytes,
            "own_folder": given is not None,
            "files": {
                name: {"size": each.size, "sha256": each.sha256}
                for name, each in sorted(found.files.items())
            },
        }
        return folder, evidence

    def _beside(self, model: HubModel, suffix: str) -> Path:
        folder = self.folder(model)
        return folder.with_name(f"{folder.name}.{suffix}")

    def _api(self) -> HfApi:
        # Its progress bars would overwrite the kit's; the token is read only here.
        os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
        from huggingface_hub import HfApi

        return HfApi(endpoint=self.endpoint, token=os.environ.get("HF_TOKEN") or None)

    def _lock(self, model: HubModel, path: Path) -> ModelLock:
        """Return the lock of ``model``, asking the hub if there is none for this revision."""
        if path.exists():
            known = read_record(path, ModelLock)
            if model.revision in (None, known.revision):
                return known
        with hub_errors(model.repository):
            info = self._api().model_info(
                model.repository, revision=model.revision or REVISION, files_metadata=True
            )
        lock = ModelLock(
            repository=model.repository,
            revision=str(info.sha),
            pinned=model.revision is not None,
            files={
                each.rfilename: HubFile(
                    size=each.size or 0, sha256=each.lfs.sha256 if each.lfs else None
                )
                for each in info.siblings or ()
            },
        )
        write_json(path, lock.model_dump(mode="json"))
        if not lock.pinned:
            self.progress.say(
                f"Model {lock.repository}: the suite names no revision, so this host is locked to "
                f"{lock.revision} from now on."
            )
        return lock

    def _check_given(self, folder: Path, lock: ModelLock) -> None:
        missing = [name for name in lock.files if not (folder / name).is_file()]
        if missing:
            raise HostError(
                f"{folder} does not contain {lock.repository}: {missing[0]} and "
                f"{len(missing) - 1} other files of revision {lock.revision[:12]} are missing",
                usually="another model's folder was given, or its download is not complete",
                next_step="omit --model, and the kit downloads it",
            )

    def _download(self, folder: Path, lock: ModelLock) -> None:
        """Fetch what is missing or has the wrong size; an interrupted download resumes."""
        missing = [name for name, each in lock.files.items() if not has_size(folder / name, each)]
        if not missing:
            return
        needed = sum(lock.files[name].size for name in missing)
        check_space(folder, needed, f"the rest of model {lock.repository}")
        make_folder(folder)
        text = f"download {lock.repository}, {len(missing)} files, {needed / 1e9:,.1f} GB"
        with (
            self.progress.step(text, expected_s=needed / DOWNLOAD_BYTES_PER_S),
            hub_errors(lock.repository),
        ):
            self._fetch(folder, lock, missing)

    def _fetch(self, folder: Path, lock: ModelLock, names: list[str]) -> None:
        """Fetch files concurrently, reporting how much has arrived.

        In threads that do not outlive an interrupt: what they leave half done is resumed later.
        `snapshot_download` would wait for the files in progress, tens of GB each, before Ctrl-C
        has any effect.
        """
        todo: queue.SimpleQueue[str] = queue.SimpleQueue()
        for name in names:
            todo.put(name)
        failures: list[Exception] = []

        def work() -> None:
            while not failures:
                try:
                    name = todo.get_nowait()
                except queue.Empty:
                    return
                try:
                    # A file of the wrong size would pass for complete if younger than a second.
                    (folder / name).unlink(missing_ok=True)
                    self._api().hf_hub_download(
                        lock.repository, name, revision=lock.revision, local_dir=folder
                    )
                except Exception as error:  # for the caller's thread
                    failures.append(error)

        workers = [threading.Thread(target=work, daemon=True) for _ in range(DOWNLOADS)]
        for worker in workers:
            worker.start()
        said = self.clock.monotonic()
        while any(worker.is_alive() for worker in workers):
            self.progress.tick()
            self.clock.sleep(POLL_SECONDS)
            if self.clock.monotonic() - said >= SAY_SECONDS:
                said = self.clock.monotonic()
                arrived = _bytes_in(folder) / 1e9
                self.progress.say(f"  {arrived:,.0f} of {lock.bytes / 1e9:,.0f} GB downloaded")
        if failures:
            raise failures[0]


def _bytes_in(folder: Path) -> int:
    """Return the size of all files; those moved in the meantime are left out."""
    total = 0
    for path in folder.rglob("*"):
        with contextlib.suppress(OSError):
            total += path.stat().st_size if path.is_file() else 0
    return total


@contextlib.contextmanager
def hub_errors(repository: str) -> Iterator[None]:
    """Turn the hub client's errors into the kit's.

    Raises:
        ImageError: in every case.
    """
    from huggingface_hub.errors import (
        GatedRepoError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    try:
        yield
    except KitError:
        raise
    except (GatedRepoError, RepositoryNotFoundError, RevisionNotFoundError) as error:
        raise ImageError(
            f"the hub refuses {repository}: {_first_line(error)}",
            usually="the name or the revision is wrong, or the model requires a login",
            next_step="open the model's page; if it requires a login, set HF_TOKEN",
        ) from error
    except Exception as error:  # its HTTP library, and so its errors, changed between releases
        raise ImageError(
            f"could not download {repository}: {_first_line(error)}",
            usually="the hub does not answer, or the connection broke",
            next_step="run the same command again: the download resumes",
        ) from error


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
