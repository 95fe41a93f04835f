"""Locks of the engine environment: made by uv, split in two, read back.

torch and the parts of its CUDA build are in a lock of their own. The environment first tries the
CPU build, and falls back to that second lock if no index has it.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from harness.files import write_text
from harness.runtime.images import ACCELERATOR_LOCK, LOCK

ACCELERATOR = re.compile(r"^(?:torch|triton|nvidia-.*|cuda-.*)$")
NEVER = "sys_platform == 'never'"
"""The marker by which docker/vllm-cpu/overrides.txt switches a dependency off."""

_ENTRY = re.compile(r"^[A-Za-z0-9].*?(?=^[A-Za-z0-9]|\Z)", re.MULTILINE | re.DOTALL)


def entries(lock: str) -> list[tuple[str, str]]:
    """Return names and entries of a pip requirements lock.

    A name can appear more than once: with different versions for different Pythons or platforms.
    """
    found = (match.group() for match in _ENTRY.finditer(lock))
    return [(re.split(r"[=\[ ]", entry, maxsplit=1)[0], entry) for entry in found]


def split(lock: str) -> tuple[str, str]:
    """Return ``(all else, torch and its CUDA parts)``, without what is switched off."""
    common: list[str] = []
    accelerator: list[str] = []
    for name, entry in entries(lock):
        if NEVER not in entry.splitlines()[0]:
            (accelerator if ACCELERATOR.match(name) else common).append(entry)
    return "".join(common), "".join(accelerator)


def main() -> None:
    """Split the lock (first argument) into the two locks of an image folder (second argument)."""
    whole, folder = (Path(argument) for argument in sys.argv[1:])
    common, accelerator = split(whole.read_text(encoding="utf-8"))
    write_text(folder / LOCK, common)
    write_text(folder / ACCELERATOR_LOCK, accelerator)


if __name__ == "__main__":
    main()
