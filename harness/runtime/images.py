"""The images of docker/: one folder each, pinned by the bytes of what they are built from."""

from __future__ import annotations

from pathlib import Path

from harness.errors import UsageError
from harness.files import sha256_of_tree
from harness.suite.load import nearest

LOCK = "requirements.lock"
ACCELERATOR_LOCK = "torch-cuda.lock"


def images_folder() -> Path:
    """Return the clone's docker/."""
    return Path(__file__).resolve().parents[2] / "docker"


def image_folder(image: str, root: Path) -> Path:
    """Return the folder that ``image`` is made from.

    Raises:
        UsageError: there is none.
    """
    folder = root / image
    names = sorted(path.name for path in root.iterdir() if path.is_dir())
    if image not in names:
        raise UsageError(
            f"unknown image {image!r}{nearest(image, names)}",
            usually=f"the images of this clone are: {', '.join(names) or 'none'}",
            next_step=f"ls {root}",
        )
    return folder


def pin_of(image: str, root: Path) -> str:
    """Return the SHA-256 over the locks of ``image``: what decides the bytes that will run."""
    return sha256_of_tree(image_folder(image, root).glob("*.lock"))
