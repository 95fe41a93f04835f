"""Resolve a lock again and compare: every package and every hash must still be on the index.

``python -m tests.contract.check_lock LOCK RESOLVED``, the second written by ``uv pip compile`` from
the first without dependencies. Files added to a release since then are fine.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from harness.runtime.locks import entries


def hashes(path: Path) -> dict[str, set[str]]:
    """Return the hashes of each pinned package."""
    found: dict[str, set[str]] = {}
    for _, entry in entries(path.read_text(encoding="utf-8")):
        pinned = entry.split()[0]
        found.setdefault(pinned, set()).update(re.findall(r"sha256:[0-9a-f]{64}", entry))
    return found


def main() -> None:
    """Exit with a message where a package or a hash is gone."""
    locked, resolved = (hashes(Path(argument)) for argument in sys.argv[1:3])
    gone = [name for name, found in locked.items() if not found <= resolved.get(name, set())]
    if gone:
        sys.exit(f"{sys.argv[1]}: no longer on the index as locked: {', '.join(gone)}")
    print(f"{sys.argv[1]}: {len(locked)} packages with all hashes")


if __name__ == "__main__":
    main()
