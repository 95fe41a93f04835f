"""Every write of the kit goes through here: atomic, strict JSON, with a hook for crash tests.

A reader sees either the old file or the whole new one. `before_write` is called ahead of each
step of each write; the crash tests make it raise there, once for every step, which covers every
moment at which a run can be killed. What is read is opened by `harness.reading`.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, JsonValue, ValidationError

from harness.errors import HostError, UsageError
from harness.reading import RECORD_LIMIT, read_text

Record = TypeVar("Record", bound=BaseModel)
Hook = Callable[[str, Path], None]

_hook: Hook | None = None


@contextlib.contextmanager
def before_write(hook: Hook) -> Iterator[None]:
    """Call ``hook(step, path)`` before each step of each write, within the block."""
    global _hook
    previous, _hook = _hook, hook
    try:
        yield
    finally:
        _hook = previous


def _step(name: str, path: Path) -> None:
    if _hook is not None:
        _hook(name, path)


def write_text(path: Path, text: str) -> None:
    """Replace the contents of ``path`` with ``text`` (UTF-8, unchanged), creating its folders.

    Raises:
        HostError: the disk is full, or the path cannot be written.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        _step("create", path)
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("w", encoding="utf-8", newline="") as stream:
            _step("write", path)
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        _step("rename", path)
        temporary.replace(path)
        _step("sync", path)
        _sync_folder(path.parent)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise write_error(path, error) from error


def _sync_folder(folder: Path) -> None:
    """Make a rename durable; without this a power cut can undo it."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(path: Path) -> Path:
    """Create a folder and its parents; return it.

    Raises:
        HostError: as `write_text`.
    """
    try:
        _step("folder", path)
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise write_error(path, error) from error
    return path


def remove_file(path: Path) -> None:
    """Remove a file if it exists.

    Raises:
        HostError: as `write_text`.
    """
    try:
        _step("remove", path)
        path.unlink(missing_ok=True)
    except OSError as error:
        raise write_error(path, error) from error


def append_line(path: Path, line: str) -> None:
    """Append one line and make it durable; a crash can tear at most the last line.

    Raises:
        HostError: as `write_text`.
    """
    try:
        _step("append", path)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as stream:
            stream.write(line + "\n")
            stream.flush()
            os.fsync(stream.fileno())
    except OSError as error:
        raise write_error(path, error) from error


def write_error(path: Path, error: OSError) -> HostError:
    """Turn a failed write into a message that says what to do about it."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return HostError(
            f"no space left while writing {path}",
            usually="the disk is full; everything written before this is intact",
            next_step="free some space, then run the same command again: it resumes from there",
        )
    return HostError(
        f"cannot write {path}: {error.strerror or error}",
        usually="the folder is read-only or belongs to another user",
        next_step=f"check with: ls -ld {path.parent}",
    )


def write_json(path: Path, value: object) -> None:
    """Write ``value`` as strict JSON: sorted keys, no NaN or Infinity, a final newline.

    Raises:
        ValueError: ``value`` holds a number that JSON cannot carry.
        HostError: as `write_text`.
    """
    text = json.dumps(value, indent=2, sort_keys=True, allow_nan=False, ensure_ascii=False)
    write_text(path, text + "\n")


def read_json(path: Path) -> Any:  # noqa: ANN401 - callers validate with a model
    """Read strict JSON that the kit itself wrote.

    Raises:
        UsageError: as `read_text`; not JSON, or with a key twice.
    """
    text = read_text(path, limit=RECORD_LIMIT)
    try:
        return json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_unique_keys)
    except (ValueError, RecursionError) as error:
        raise UsageError(
            f"cannot read {path}: {error}",
            usually="this kit did not write the file, or it was changed by hand or a program",
            next_step="restore the file, or start a new run with: nox -s reproduce -- --fresh",
        ) from error


def read_record(path: Path, model: type[Record]) -> Record:
    """Read one of the kit's own files.

    Raises:
        UsageError: unreadable, or not of this version.
    """
    data: Mapping[str, JsonValue] = read_json(path)
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise not_ours(path, error) from error


def not_ours(path: Path, error: ValidationError) -> UsageError:
    """Return the error for one of the kit's files that breaks its model."""
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    return UsageError(
        f"{path}: {where}: {first['msg']}",
        usually="another version of the kit wrote it, or it was changed by hand",
        next_step="use that version of the kit, or start a new run: nox -s reproduce -- --fresh",
    )


def _refuse_constant(name: str) -> float:
    msg = f"{name} is not JSON"
    raise ValueError(msg)


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        names = [key for key, _ in pairs]
        twice = sorted({key for key in names if names.count(key) > 1})
        msg = f"duplicate key: {', '.join(twice)}"
        raise ValueError(msg)
    return result


def sha256_of(path: Path) -> str:
    """Return the hex SHA-256 of a file's bytes."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
