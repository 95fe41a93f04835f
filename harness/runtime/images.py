"""The images of docker/: what each is made from, pinned in docker/images.lock.yaml."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from harness.errors import UsageError
from harness.files import sha256_of
from harness.suite import yaml
from harness.suite.load import nearest, validate
from harness.suite.model import Identifier, Strict

LOCK_FILE = "images.lock.yaml"
LOCK = "requirements.lock"
ACCELERATOR_LOCK = "torch-cuda.lock"

Digest = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Base(Strict):
    """An image that is pulled. Where no digest is known, it is locked at the first pull."""

    name: str
    tag: str
    index: Digest | None = None
    amd64: Digest | None = None
    evidence: str
    date: str

    @property
    def reference(self) -> str:
        """Return what is pulled and run: by digest where one is known."""
        digest = self.amd64 or self.index
        return f"{self.name}@{digest}" if digest else f"{self.name}:{self.tag}"


class Source(Strict):
    """A source package, by hash."""

    name: str
    version: str
    sha256: Sha256


class Image(Strict):
    """One image of the kit: a base as it is, or built on one, or made from locks."""

    base: Identifier | None = None
    sources: Annotated[tuple[Source, ...], Field(strict=False)] = ()
    locks: Annotated[tuple[str, ...], Field(strict=False)] = ()


class ImagesFile(Strict):
    """``docker/images.lock.yaml``."""

    schema_version: Literal[1]
    bases: dict[Identifier, Base]
    images: dict[Identifier, Image]

    @model_validator(mode="after")
    def _bases_are_known(self) -> Self:
        for name, image in self.images.items():
            if image.base is not None and image.base not in self.bases:
                msg = f"image {name} is made from {image.base!r}{nearest(image.base, self.bases)}"
                raise ValueError(msg)
        return self


def images_folder() -> Path:
    """Return the clone's docker/."""
    return Path(__file__).resolve().parents[2] / "docker"


def load_images(root: Path) -> ImagesFile:
    """Read ``root/images.lock.yaml``.

    Raises:
        UsageError: it breaks its schema.
    """
    return validate(yaml.load(root / LOCK_FILE), ImagesFile)


def image_of(name: str, root: Path) -> Image:
    """Return one image's entry.

    Raises:
        UsageError: there is none.
    """
    images = load_images(root).images
    if name not in images:
        raise UsageError(
            f"unknown image {name!r}{nearest(name, images)}",
            usually=f"the images of this clone are: {', '.join(images)}",
            next_step=f"open {root / LOCK_FILE}",
        )
    return images[name]


def run_reference(name: str, root: Path) -> str:
    """Return what `docker run` is given: the base by digest, or the tag that a build gives."""
    image = image_of(name, root)
    if image.base is not None and not image.sources:
        return load_images(root).bases[image.base].reference
    return f"b300-repro/{name}:{pin_of(name, root)[:12]}"


def pin_of(name: str, root: Path) -> str:
    """Return the SHA-256 over everything that decides the bytes of image ``name``."""
    image = image_of(name, root)
    base = load_images(root).bases[image.base].reference if image.base else None
    missing = [str(root / name / lock) for lock in image.locks if not (root / name / lock).exists()]
    if missing:
        raise UsageError(
            f"image {name}: {', '.join(missing)}: no such file",
            usually=f"the name is misspelt in {root / LOCK_FILE}, or the lock was not made",
            next_step="nox -s lock",
        )
    parts = {
        "base": base,
        "sources": [source.model_dump() for source in image.sources],
        "locks": {lock: sha256_of(root / name / lock) for lock in image.locks},
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
