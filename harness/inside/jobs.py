"""Job files in, results and events out."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any


def read_job() -> dict[str, Any]:
    """Read the job file that the command line names."""
    job: dict[str, Any] = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    return job


def write_atomic(path: Path, text: str) -> None:
    """Replace the contents of ``path``; a reader sees the old file or the whole new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.partial")
    with temporary.open("w", encoding="utf-8") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    temporary.replace(path)


class Events:
    """JSON lines that tell the harness how far the job has come; times are Unix seconds."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._stream = path.open("a", encoding="utf-8")

    def emit(self, event: str, **fields: object) -> None:
        """Append one event and flush it."""
        record = {"event": event, "time": time.time(), **fields}
        self._stream.write(json.dumps(record, allow_nan=False) + "\n")
        self._stream.flush()
