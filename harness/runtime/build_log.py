"""BuildKit's log, read as it grows: which step runs, how long each took, why one failed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

TAIL_LINES = 12


@dataclass(frozen=True)
class Step:
    """One step of a Dockerfile: what it runs, and how long it took in seconds; 0 if cached."""

    text: str
    seconds: float
    cached: bool


# What BuildKit prints with --progress plain: "#9 [ 3/12] RUN ...", "#9 DONE 71.8s", "#9 ERROR: ..."
_STEP = re.compile(r"^#(\d+) \[(?:\S+ )?\s*(\d+)/(\d+)\] (.*)$")
_END = re.compile(r"^#(\d+) (?:(CACHED)|DONE ([\d.]+)s|(ERROR)\b.*)$")
_STAMP = re.compile(r"^\S+Z ")


@dataclass
class BuildLog:
    """Reads a build's log while it is being written."""

    _texts: dict[str, str] = field(default_factory=dict)
    _output: dict[str, list[str]] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    failed: str | None = None
    """Number of the step that failed."""

    def feed(self, lines: Sequence[str]) -> Iterator[str]:
        """Take more lines; yield each step that begins, as ``3/12 RUN ...``."""
        for stamped in lines:
            line = _STAMP.sub("", stamped, count=1)
            if match := _STEP.match(line):
                number, index, count, text = match.groups()
                if number not in self._texts:
                    self._texts[number] = f"{index}/{count} {_shortened(text)}"
                    yield self._texts[number]
            elif (match := _END.match(line)) and match[1] in self._texts:
                self._finish(*match.groups())
            elif line.startswith("#"):
                number, _, text = line[1:].partition(" ")
                self._output.setdefault(number, []).append(text)
            else:
                self._output.setdefault("", []).append(line)

    def _finish(
        self, number: str, cached: str | None, seconds: str | None, error: str | None
    ) -> None:
        if error:
            self.failed = number
        else:
            self.steps.append(Step(self._texts[number], float(seconds or 0), cached is not None))

    def failure(self) -> str:
        """Return the failing step with its last lines, or the log's last lines."""
        number = self.failed or ""
        tail = self._output.get(number) or self._output.get("", [])
        text = f"step {self._texts[number]}\n" if number in self._texts else ""
        return text + "\n".join(tail[-TAIL_LINES:])


def _shortened(text: str, width: int = 70) -> str:
    words = " ".join(text.split())
    return words if len(words) <= width else words[: width - 1] + "…"
