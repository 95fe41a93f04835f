"""What a person sees during a run, on stderr: a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Protocol

from rich.console import Console
from rich.status import Status

from harness.clock import Clock, duration

HEARTBEAT_SECONDS = 30.0


class Progress(Protocol):
    """How far the run is: steps with expected durations, and remarks between them."""

    def say(self, text: str) -> None:
        """Show a line that stays."""
        ...

    def expect(self, seconds: float) -> None:
        """Set how long everything still to come will take, in seconds."""
        ...

    def step(self, text: str, *, expected_s: float) -> contextlib.AbstractContextManager[None]:
        """Show what runs now; on leaving, how long it took or that it failed."""
        ...

    def tick(self) -> None:
        """Update the times shown; called while waiting."""
        ...


class ConsoleProgress:
    """Progress on a rich console."""

    def __init__(self, console: Console, clock: Clock) -> None:
        self._console = console
        self._clock = clock
        self._status: Status | None = None
        self._left = 0.0
        self._text = ""
        self._expected = 0.0
        self._began = 0.0
        self._heartbeat = 0.0

    def say(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def expect(self, seconds: float) -> None:
        self._left = seconds

    @contextlib.contextmanager
    def step(self, text: str, *, expected_s: float) -> Iterator[None]:
        self._text, self._expected = text, expected_s
        self._began = self._heartbeat = self._clock.monotonic()
        failed = True
        try:
            with self._live():
                yield
            failed = False
        finally:
            took = duration(self._clock.monotonic() - self._began)
            self._left = max(0.0, self._left - expected_s)
            self.say(f"  {text}: {'stopped after ' if failed else ''}{took}{self._left_text()}")

    def tick(self) -> None:
        now = self._clock.monotonic()
        if self._status is not None:
            self._status.update(self._line(now))
        elif now - self._heartbeat >= HEARTBEAT_SECONDS:
            self._heartbeat = now
            self.say(self._line(now))

    @contextlib.contextmanager
    def _live(self) -> Iterator[None]:
        if not self._console.is_terminal:
            self.say(f"> {self._text}, about {duration(self._expected)}")
            yield
            return
        with self._console.status(self._line(self._began)) as self._status:
            try:
                yield
            finally:
                self._status = None

    def _line(self, now: float) -> str:
        elapsed = now - self._began
        rest = max(0.0, self._left - min(elapsed, self._expected))
        left = f"; about {duration(rest)} left in total" if rest >= 1 else ""
        return f"  {self._text}: {duration(elapsed)} of about {duration(self._expected)}{left}"

    def _left_text(self) -> str:
        return f" (about {duration(self._left)} left)" if self._left >= 1 else ""
