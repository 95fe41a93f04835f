"""Every error that a user can meet, with its exit code.

A message has three parts: what failed, what that usually means, and what to type next.
`harness.cli.main` prints these errors without a traceback; any other exception is a defect
of the kit and keeps its traceback.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

EXIT_MEASURED = 0
EXIT_INTERRUPTED = 130


def printable(text: str) -> str:
    """Return ``text`` with ``?`` for what a terminal would obey: control and bidi characters."""
    return "".join(letter if letter.isprintable() else "?" for letter in text.expandtabs())


class KitError(Exception):
    """Base of all errors caused by the user, the host or an engine, not by a defect of the kit."""

    exit_code: ClassVar[int]

    def __init__(self, what: str, *, usually: str, next_step: str) -> None:
        super().__init__(what)
        self.what = what
        self.usually = usually
        self.next_step = next_step

    @property
    def summary(self) -> str:
        """What failed, in one line."""
        return self.what.splitlines()[0]

    def render(self) -> str:
        """Return the message as shown to a person; parts may span several lines."""
        parts = (("error:  ", self.what), ("usually:", self.usually), ("next:   ", self.next_step))
        indent = "\n" + " " * 9
        return "\n".join(
            f"{head} {indent.join(printable(line) for line in text.splitlines())}"
            for head, text in parts
        )


class CellError(KitError):
    """One cell could not be measured; the run continues and ends with this exit code."""

    exit_code = 1


class UsageError(KitError):
    """A wrong option, a mistake in a recipe, or a refused file."""

    exit_code = 2


class HostError(KitError):
    """The host is unsuitable, lacks space, or is held by another run."""

    exit_code = 3


class ImageError(KitError):
    """An image or an engine environment could not be built, or is not the pinned one."""

    exit_code = 4


class EngineError(KitError):
    """An engine did not start, or stopped."""

    exit_code = 5


class EngineStoppedError(EngineError):
    """An engine that was running stopped, or had to be stopped.

    ``log`` holds its whole output.
    """

    def __init__(
        self, happened: str, *, log: Path, last_lines: str, usually: str, next_step: str
    ) -> None:
        super().__init__(
            f"{happened}; its last lines:\n{last_lines}", usually=usually, next_step=next_step
        )
        self.log = log
        self._summary = f"{happened}; its last line: {last_lines.splitlines()[-1].strip()}"

    @property
    def summary(self) -> str:
        return self._summary


class DaemonLostError(EngineError):
    """The Docker daemon went away while its containers were running: no engine is to blame."""
