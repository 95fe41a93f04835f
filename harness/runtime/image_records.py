"""What is recorded about a prepared image: the kit's own files, strict and versioned."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from harness.runtime.images import Digest
from harness.validation import Strict

How = Literal["digest of the lock", "locked at its first pull", "a local image in its place"]


class BaseRecord(Strict):
    """What an image was made from, and how that was verified."""

    name: str
    reference: str
    id: str
    digest: Digest | None
    how: How


class StepRecord(Strict):
    """One step of a build; seconds are those of the build that actually ran it."""

    text: str
    seconds: float
    cached: bool


class ImageRecord(Strict):
    """What was prepared: `start` refuses to run anything else under this name."""

    schema_version: Literal[1] = 1
    image: str
    pin: str
    reference: str
    id: str
    size_bytes: int
    base: BaseRecord
    sources: Annotated[tuple[str, ...], Field(strict=False)] = ()
    build_args: dict[str, str] = Field(default_factory=dict)
    labels: dict[str, str] = Field(default_factory=dict)
    seconds: float = 0.0
    steps: Annotated[tuple[StepRecord, ...], Field(strict=False)] = ()
    log: str | None = None


class FirstPull(Strict):
    """The digest that a tag had when it was pulled for the first time."""

    reference: str
    digest: Digest
