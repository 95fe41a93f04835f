"""Fetch sdists by hash from the package index, without running anything of theirs.

``pip download`` would ask each for its metadata, which executes its setup.py and needs torch.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tarfile
from pathlib import Path

import requests

from harness.runtime.images import Images, Source, images_folder

SIMPLE_JSON = "application/vnd.pypi.simple.v1+json"
IMAGE = "deepinfer"


def index_url() -> str:
    """Return the index that pip is configured with, else pip's own default."""
    from pip._internal.models.index import PyPI

    return os.environ.get("PIP_INDEX_URL") or str(PyPI.simple_url)


def fetch(source: Source, folder: Path) -> Path:
    """Fetch and unpack one sdist; return its folder.

    Raises:
        AssertionError: its bytes are not those of the lock.
    """
    name = f"{source.name.replace('-', '_')}-{source.version}"
    unpacked = folder / name
    if unpacked.is_dir():
        return unpacked
    page = requests.get(
        f"{index_url().rstrip('/')}/{source.name}/", headers={"Accept": SIMPLE_JSON}, timeout=60
    )
    page.raise_for_status()
    url = next(each["url"] for each in page.json()["files"] if each["filename"] == f"{name}.tar.gz")
    archive = requests.get(url, timeout=300)
    archive.raise_for_status()
    found = hashlib.sha256(archive.content).hexdigest()
    assert found == source.sha256, (
        f"{name}.tar.gz has sha256 {found}, the lock says {source.sha256}"
    )
    path = folder / f"{name}.tar.gz"
    path.write_bytes(archive.content)
    with tarfile.open(path) as tar:
        tar.extractall(folder, filter="data")
    return unpacked


def main() -> None:
    """Fetch every source of DeepInfer's image into the folder named, checking its hash."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for source in Images(images_folder()).image(IMAGE).sources:
        print(f"{fetch(source, folder)}: sha256 {source.sha256}")


if __name__ == "__main__":
    main()
