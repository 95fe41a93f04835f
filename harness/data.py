"""Where the kit's own files are: those of a clone, or those that came inside the package."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

PACKAGE = Path(__file__).resolve().parent


def clone() -> Path | None:
    """Return the clone that the kit runs from; None where it is installed outside of one.

    Recognized by its image lock: site-packages can hold another package's docker/ folder, and a
    pyproject.toml that a package left there by mistake.
    """
    root = PACKAGE.parent
    return root if (root / "docker" / "images.lock.yaml").is_file() else None


def data_folder(name: Literal["recipes", "docker"]) -> Path:
    """Return recipes/ or docker/: the clone's, else the wheel's copy (pyproject.toml puts it)."""
    return (clone() or PACKAGE / "_data") / name


def reports_folder() -> Path:
    """Return where runs land by default: the clone's reports/, else that of the current folder."""
    return (clone() or Path.cwd()) / "reports"
