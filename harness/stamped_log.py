"""An engine's output as a log in which every line is stamped with its time of arrival."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import IO

from harness.clock import Clock, stamp
from harness.files import write_error


class StampedLog:
    """Copies output to a file. Runs in a thread, so a failed write is kept and raised later."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self.path = path
        self._clock = clock
        self._error: OSError | None = None

    def copy(self, chunks: Iterable[bytes]) -> None:
        """Copy all ``chunks``; progress bars end their lines with a bare CR."""
        rest = b""
        with self.path.open("ab") as log:
            for chunk in chunks:
                *lines, rest = (rest + chunk).replace(b"\r", b"\n").split(b"\n")
                self._write(log, lines)
            self._write(log, [rest])

    def raise_failed_write(self) -> None:
        """Raise the error of a failed write, if there was one.

        Raises:
            HostError: the disk was full, or the file could not be written.
        """
        if self._error is not None:
            raise write_error(self.path, self._error) from self._error

    def _write(self, log: IO[bytes], lines: Sequence[bytes]) -> None:
        moment = stamp(self._clock.now()).encode()
        try:
            log.writelines(b"%s %s\n" % (moment, line) for line in lines if line.strip())
            log.flush()
        except OSError as error:
            # Keep reading: a full pipe would stop the engine in the middle of a measurement.
            self._error = error


def moment_of(line: str) -> datetime | None:
    """Return when a line of such a log arrived; None for a line without a time."""
    try:
        moment = datetime.fromisoformat(line.split(" ", 1)[0])
    except ValueError:
        return None
    return moment if moment.tzinfo else None


def log_tail(log: Path, lines: int = 12) -> str:
    """Return the last lines of a log, for an error message."""
    if not log.exists():
        return "(no output)"
    text = log.read_text(encoding="utf-8", errors="replace").splitlines()
    return "\n".join(text[-lines:]) or "(no output)"
