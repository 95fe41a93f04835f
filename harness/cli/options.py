"""What a person asked for, one frozen dataclass for each verb: the command line after parsing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.results.validity import Expected
from harness.suite.planner import Choice


@dataclass(frozen=True, kw_only=True)
class ImageOptions:
    """What takes the place of the lock of docker/; the verb `images` takes these alone."""

    bases: Mapping[str, str]
    """A local image for each replaced base."""
    build_args: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Selection:
    """What to measure, and on which grounds: shared by `plan` and `run`."""

    suite: str | None
    """None takes the suite made for the host."""
    choice: Choice
    reports: Path | None
    """Where runs land; None is where they land by default."""
    model: Path | None
    """The model, where a person has it already."""
    privileged: bool
    images: ImageOptions


@dataclass(frozen=True, kw_only=True)
class PlanOptions:
    """Of `plan`."""

    selection: Selection
    json: bool
    dry_run: bool


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Of `run`."""

    selection: Selection
    dry_run: bool
    fresh: bool
    retry_failed: bool
    rebuild: bool
    keep: bool


@dataclass(frozen=True, kw_only=True)
class BuildOptions:
    """Of `build`."""

    names: tuple[str, ...]
    """None at all means every image that is not opt-in."""
    rebuild: bool
    images: ImageOptions


@dataclass(frozen=True, kw_only=True)
class PublishedOptions:
    """Of `published`."""

    suite: str


@dataclass(frozen=True, kw_only=True)
class SchemaOptions:
    """Of `schema`, which has none."""


@dataclass(frozen=True, kw_only=True)
class CheckOptions:
    """Of `check`."""

    file: Path
    expected: Expected


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """Of `report`."""

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
