"""``published.json``: the publication that a run is compared with, kept in the run directory."""

from __future__ import annotations

from typing import Literal, Protocol

from pydantic import Field, JsonValue

from harness.settings.base import Given
from harness.settings.registry import SETTINGS
from harness.suite.model import Hardware, Workload
from harness.suite.published import PublishedFile
from harness.validation import Strict


class Conditions(Strict):
    """Conditions under which a published recipe was run, as far as comparisons depend on them."""

    engine: str
    image: str
    speculation: JsonValue


class Reference(Strict):
    """The publication, its conditions, and how its names map to those of the run.

    ``recipes`` and ``workloads`` map the publication's names to those of the run's suite; a name
    that they do not hold is the same in both.
    """

    schema_version: Literal[1] = 1
    published: PublishedFile
    hardware: Hardware
    published_workloads: dict[str, Workload]
    published_recipes: dict[str, Conditions]
    recipes: dict[str, str] = Field(default_factory=dict)
    workloads: dict[str, str] = Field(default_factory=dict)


class Configured(Given, Protocol):
    """A recipe or a planned session."""

    @property
    def engine(self) -> str:
        """Name of its engine."""
        ...

    @property
    def image(self) -> str:
        """Name of its image."""
        ...


def conditions_of(configured: Configured) -> Conditions:
    """Return the conditions of a recipe or session that decide comparisons."""
    speculation = SETTINGS[configured.engine].speculation(configured)
    return Conditions(engine=configured.engine, image=configured.image, speculation=speculation)
