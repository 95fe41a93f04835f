"""The publication that a run is compared with, taken from recipes/ into the run directory."""

from __future__ import annotations

from pathlib import Path

from harness.results.reference import Reference, conditions_of
from harness.suite.read import Suite, read_suite


def reference_of(suite: Suite, root: Path) -> Reference | None:
    """Return the publication of ``suite``, or the one that it names; None if it has neither.

    Raises:
        UsageError: the suite that it names does not exist or has a mistake.
    """
    names = suite.file.compares_with
    source = read_suite(names.suite, root) if names else suite
    if source.published is None or source.file.hardware is None:
        return None
    return Reference(
        published=source.published,
        hardware=source.file.hardware,
        published_workloads=source.file.workloads,
        published_recipes={name: conditions_of(recipe) for name, recipe in source.recipes.items()},
        recipes=names.recipes if names else {},
        workloads=names.workloads if names else {},
    )
