"""The images of docker/: what each is made from, pinned in docker/images.lock.yaml."""

from __future__ import annotations

import functools
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from harness import yaml
from harness.data import data_folder
from harness.errors import UsageError
from harness.files import sha256_of
from harness.validation import Identifier, Strict, nearest, validate

LOCK_FILE = "images.lock.yaml"
LOCK = "requirements.lock"
ACCELERATOR_LOCK = "torch-cuda.lock"
CONTRACT = "contract.json"
"""What a built image offers, as the image itself reported."""
NOT_BUILT = (CONTRACT, "README.md")
"""Files of an image's folder that result from a build or describe one, and influence none."""

Digest = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Base(Strict):
    """An image that is pulled. If no digest is known, it is locked at the first pull."""

    name: str
    tag: str
    index: Digest | None = None
    amd64: Digest | None = None
    evidence: str
    date: str

    @property
    def digest(self) -> str | None:
        """Return the digest that is pulled: the platform's own if it is known."""
        return self.amd64 or self.index

    @property
    def reference(self) -> str:
        """Return what is pulled: by digest if one is known."""
        return f"{self.name}@{self.digest}" if self.digest else f"{self.name}:{self.tag}"


class Source(Strict):
    """A source package, by hash."""

    name: str
    version: str
    sha256: Sha256

    @property
    def requirement(self) -> str:
        """Return it as a pip requirement with its hash."""
        return f"{self.name}=={self.version} --hash=sha256:{self.sha256}"


class Image(Strict):
    """One image of the kit: a published base as it is, or built from docker/<folder> on a base.

    An image with locks can also be made as a virtual environment, for the runtime ``local``.
    """

    base: Identifier
    folder: Identifier | None = None
    sources: Annotated[tuple[Source, ...], Field(strict=False)] = ()
    locks: Annotated[tuple[str, ...], Field(strict=False)] = ()
    build_args: dict[str, str] = Field(default_factory=dict)
    wheels_for: str | None = None
    """Python version of its base, where wheels are fetched outside and copied into the context."""
    memory_per_job_gb: float | None = None
    """Memory that one compiler process takes at most; it bounds the build argument JOBS."""
    local: bool = False
    """Whether the locks also make it as a virtual environment."""
    opt_in: bool = False
    """Built only when it is named, or when a recipe that runs needs it."""


class ImagesFile(Strict):
    """``docker/images.lock.yaml``."""

    schema_version: Literal[1]
    bases: dict[Identifier, Base]
    images: dict[Identifier, Image]

    @model_validator(mode="after")
    def _bases_are_known(self) -> Self:
        for name, image in self.images.items():
            if image.base not in self.bases:
                msg = f"image {name}: unknown base {image.base!r}{nearest(image.base, self.bases)}"
                raise ValueError(msg)
        return self


@dataclass(frozen=True)
class Images:
    """The lock of a docker/ folder, and the local images that replace some of its bases."""

    root: Path
    replaced: Mapping[str, str] = field(default_factory=dict)
    """Base -> reference of an image of this host's engine, used instead and reported as such."""
    arguments: Mapping[str, str] = field(default_factory=dict)
    """Build arguments that the user gives instead of the lock's or the Dockerfile's."""

    @functools.cached_property
    def file(self) -> ImagesFile:
        """The lock file.

        Raises:
            UsageError: it breaks its schema.
        """
        return validate(yaml.read(self.root / LOCK_FILE), ImagesFile)

    def image(self, name: str) -> Image:
        """Return one image's entry.

        Raises:
            UsageError: there is none.
        """
        images = self.file.images
        if name not in images:
            raise UsageError(
                f"unknown image {name!r}{nearest(name, images)}",
                usually=f"the images of this clone are: {', '.join(images)}",
                next_step=f"open {self.root / LOCK_FILE}",
            )
        return images[name]

    def base(self, image: str) -> Base:
        """Return the base that ``image`` is made from."""
        return self.file.bases[self.image(image).base]

    def base_reference(self, image: str) -> str:
        """Return what the base is pulled as, or the local image that replaces it."""
        entry = self.image(image)
        return self.replaced.get(entry.base) or self.file.bases[entry.base].reference

    def is_built(self, name: str) -> bool:
        """Return whether ``name`` is built; else the published base itself is run."""
        entry = self.image(name)
        return bool(entry.folder or entry.sources or entry.locks)

    def folder(self, name: str) -> Path:
        """Return the folder of its Dockerfile and locks."""
        return self.root / (self.image(name).folder or name)

    def build_args(self, name: str) -> dict[str, str]:
        """Return the build arguments of ``name``: the lock's, then the user's that it knows."""
        entry = self.image(name)
        dockerfile = self.folder(name) / "Dockerfile"
        text = dockerfile.read_text(encoding="utf-8") if dockerfile.exists() else ""
        known = set(re.findall(r"^ARG (\w+)", text, re.MULTILINE))
        given = {key: value for key, value in self.arguments.items() if key in known}
        return {**entry.build_args, **given}

    def run_reference(self, name: str) -> str:
        """Return what `docker run` is given: the base by digest, or the tag that a build gives."""
        if not self.is_built(name):
            return self.base_reference(name)
        return f"b300-repro/{name}:{self.pin(name)[:12]}"

    def pin(self, name: str) -> str:
        """Return the SHA-256 over everything that decides the bytes of image ``name``."""
        entry = self.image(name)
        folder = self.folder(name)
        missing = [str(folder / lock) for lock in entry.locks if not (folder / lock).exists()]
        if missing:
            raise UsageError(
                f"image {name}: {', '.join(missing)}: no such file",
                usually=f"the name is misspelt in {self.root / LOCK_FILE}, or the lock was never "
                "generated",
                next_step="nox -s lock",
            )
        # pip compiles what it installs, including the programs in docker/.
        found = (path for path in folder.rglob("*") if "__pycache__" not in path.parts)
        files = sorted(path for path in found if path.is_file())
        parts = {
            "base": self.base_reference(name),
            "sources": [source.model_dump() for source in entry.sources],
            "build_args": self.build_args(name),
            "files": {
                str(path.relative_to(folder)): sha256_of(path)
                for path in files
                if path.name not in NOT_BUILT
            },
        }
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def images_folder() -> Path:
    """Return the folder of the images that come with the kit."""
    return data_folder("docker")
