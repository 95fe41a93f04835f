"""Wheels for an image whose base cannot reach the indexes that this machine is configured with.

They are fetched outside, by pip with this machine's own settings, and copied into the build's
context. torch comes as its CPU build if an index has it, as for the runtime ``local``.
"""

from __future__ import annotations

import sys
from pathlib import Path

from harness.runtime.environment import CPU_TORCH
from harness.runtime.images import ACCELERATOR_LOCK, LOCK, Images

NEWEST_GLIBC = 36
"""glibc 2.36, Debian 12's: wheels for a newer one would not load in its images."""

FOLDER = "wheels"


def download_commands(name: str, images: Images, context: Path) -> list[tuple[str, ...]]:
    """Return pip's commands that fill ``context``: locked packages, torch, and torch's fallback.

    The last is used only if the one before fails.
    """
    image = images.image(name)
    platforms = [f"manylinux_2_{minor}_x86_64" for minor in range(NEWEST_GLIBC, 4, -1)]
    platforms += ["manylinux2014_x86_64", "manylinux1_x86_64", "linux_x86_64"]
    download = (
        *(sys.executable, "-m", "pip", "download", "--no-deps", "--no-input"),
        *("--only-binary", ":all:", "--implementation", "cp"),
        *("--python-version", str(image.wheels_for)),
        *(part for platform in platforms for part in ("--platform", platform)),
        *("--dest", str(context / FOLDER)),
    )
    folder = images.folder(name)
    hashes = "--require-hashes"
    return [
        (*download, hashes, "--requirement", str(folder / LOCK)),
        (*download, CPU_TORCH),
        (*download, hashes, "--requirement", str(folder / ACCELERATOR_LOCK)),
    ]
