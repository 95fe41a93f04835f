"""Why a cell has no result, what caused it, and where to read more."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from harness.errors import CellError, DaemonLostError, EngineError, EngineStoppedError
from harness.results.records import Cause


@dataclass(frozen=True)
class Failure:
    """A cell's failure, as its record states it."""

    reason: str
    """One line."""
    cause: Cause
    log: Path


def failure_of(error: CellError | EngineError, log: Path) -> Failure:
    """Return what ``error`` means for the cell that ran; ``log`` is its log if it names none."""
    if isinstance(error, EngineStoppedError):
        return Failure(error.summary, "engine", error.log)
    if isinstance(error, CellError):
        return Failure(error.summary, "client", log)
    return Failure(error.summary, "daemon" if isinstance(error, DaemonLostError) else "engine", log)
