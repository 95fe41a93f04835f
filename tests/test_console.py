"""What a person sees while it runs."""

from __future__ import annotations

import contextlib
import io
from datetime import UTC, datetime

import pytest
from rich.console import Console

from harness.clock import duration
from harness.console import ConsoleProgress


class TestClock:
    __test__ = False

    def __init__(self) -> None:
        self.time = 0.0

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.time, UTC)

    def monotonic(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += seconds


def test_plain_lines_where_there_is_no_terminal() -> None:
    stream, clock = io.StringIO(), TestClock()
    progress = ConsoleProgress(Console(file=stream, width=40), clock)
    progress.expect(100)
    with progress.step("vllm/1k-1k-c4/r1", expected_s=40):
        for _ in range(70):
            clock.sleep(1)
            progress.tick()
    with contextlib.suppress(KeyboardInterrupt), progress.step("next", expected_s=60):
        clock.sleep(3)
        raise KeyboardInterrupt
    assert stream.getvalue().splitlines() == [
        "> vllm/1k-1k-c4/r1, about 40 s",
        "  vllm/1k-1k-c4/r1: 30 s of about 40 s; about 1 min 10 s left in total",
        "  vllm/1k-1k-c4/r1: 1 min 00 s of about 40 s; about 1 min 00 s left in total",
        "  vllm/1k-1k-c4/r1: 1 min 10 s (about 1 min 00 s left)",
        "> next, about 1 min 00 s",
        "  next: stopped after 3 s",
    ]


def test_a_terminal_shows_a_live_line_and_keeps_the_last() -> None:
    stream, clock = io.StringIO(), TestClock()
    progress = ConsoleProgress(Console(file=stream, force_terminal=True, width=100), clock)
    with progress.step("vllm/1k-1k-c4/r1", expected_s=40):
        clock.sleep(12)
        progress.tick()
    assert "vllm/1k-1k-c4/r1: 12 s\n" in stream.getvalue()
    assert "> " not in stream.getvalue()


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.4, "0 s"),
        (59.4, "59 s"),
        (59.6, "1 min 00 s"),
        (3599, "59 min 59 s"),
        (7800, "2 h 10 min"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text
