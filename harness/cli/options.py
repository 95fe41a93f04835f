"""What a person asked for: the parsed command line, one frozen dataclass for each verb."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.results.validity import Expected
from harness.suite.planner import Choice


@dataclass(frozen=True, kw_only=True)
class ImageOptions:
    """What overrides the lock in docker/; the verb `images` takes only these."""

    bases: Mapping[str, str]
    """Replaced base -> local image."""
    build_args: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Selection:
    """What to measure, and with what: shared by `plan` and `run`."""

    suite: str | None
    """None means the suite made for the host."""
    choice: Choice
    reports: Path | None
    """Where runs land; None means the default folder."""
    model: Path | None
    """Folder of the model, if the user already has it."""
    privileged: bool
    images: ImageOptions


@dataclass(frozen=True, kw_only=True)
class PlanOptions:
    """Options of `plan`."""

    selection: Selection
    json: bool
    dry_run: bool


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Options of `run`."""

    selection: Selection
    dry_run: bool
    fresh: bool
    retry_failed: bool
    rebuild: bool
    keep: bool


@dataclass(frozen=True, kw_only=True)
class BuildOptions:
    """Options of `build`."""

    names: tuple[str, ...]
    """Empty means every image that is not opt-in."""
    rebuild: bool
    images: ImageOptions


@dataclass(frozen=True, kw_only=True)
class PublishedOptions:
    """Options of `published`."""

    suite: str


@dataclass(frozen=True, kw_only=True)
class SchemaOptions:
    """`schema` has no options."""


@dataclass(frozen=True, kw_only=True)
class CheckOptions:
    """Options of `check`."""

    file: Path
    expected: Expected


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """Options of `report`."""

    directory: Path


Options = (
    PlanOptions
    | RunOptions
    | ImageOptions
    | BuildOptions
    | PublishedOptions
    | SchemaOptions
    | CheckOptions
    | ReportOptions
)
