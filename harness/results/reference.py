"""``published.json``: the publication that a run is compared with, kept in the run directory."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue

from harness.suite.model import Hardware, Strict, Workload
from harness.suite.published import PublishedFile


class Conditions(Strict):
    """Under which a published recipe was run, as far as it decides comparisons."""

    engine: str
    image: str
    speculation: JsonValue


class Reference(Strict):
    """The publication, its conditions, and how its names are those of the run.

    ``recipes`` and ``workloads`` map the publication's names to those of the run's suite; they are
    the same names where the run is of the published suite itself.
    """

    schema_version: Literal[1] = 1
    published: PublishedFile
    hardware: Hardware
    published_workloads: dict[str, Workload]
    published_recipes: dict[str, Conditions]
    recipes: dict[str, str] = Field(default_factory=dict)
    workloads: dict[str, str] = Field(default_factory=dict)


def conditions_of(engine: str, image: str, args: dict[str, JsonValue]) -> Conditions:
    """Return what of a recipe decides comparisons."""
    return Conditions(engine=engine, image=image, speculation=args.get("--speculative-config"))
