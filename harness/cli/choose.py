"""Turn what a person asked for into a plan: which suite, which images, which cells."""

from __future__ import annotations

from pathlib import Path

from harness import __version__
from harness.cli.options import ImageOptions, Selection
from harness.errors import UsageError
from harness.host.facts import HostFacts
from harness.runtime.images import Images
from harness.suite.plan import Plan
from harness.suite.planner import make_plan
from harness.suite.read import Suite, read_suite, suite_names
from harness.validation import nearest

FALLBACK_SUITE = "smoke"
"""Used where no suite was made for the host."""


def choose_suite(name: str | None, facts: HostFacts, root: Path) -> Suite:
    """Return the suite that was named, else the one made for this host, else the smoke suite.

    Raises:
        UsageError: there is no such suite below ``root``, or it has a mistake.
    """
    if name:
        return read_suite(name, root)
    suites = [read_suite(each, root) for each in suite_names(root)]
    for suite in suites:
        if suite.file.hardware and facts.matches(suite.file.hardware):
            return suite
    return read_suite(FALLBACK_SUITE, root)


def choose_images(options: ImageOptions, root: Path) -> Images:
    """Return the lock of ``root``, with the bases that the user replaces with local images.

    Raises:
        UsageError: the lock has no such base.
    """
    images = Images(root, options.bases, options.build_args)
    if unknown := sorted(set(options.bases) - set(images.file.bases)):
        known = images.file.bases
        raise UsageError(
            f"--base {unknown[0]}: no such base{nearest(unknown[0], known)}",
            usually=f"the bases of docker/images.lock.yaml are: {', '.join(known)}",
            next_step="python -m harness images",
        )
    return images


def choose_plan(selection: Selection, suite: Suite, images: Images) -> Plan:
    """Plan what was selected of ``suite``, with its images pinned.

    Raises:
        UsageError: the selection does not fit the suite.
    """
    names = {recipe.image for recipe in suite.recipes.values()}
    names |= {suite.file.client_image} if suite.file.client_image else set()
    pins = {name: images.pin(name) for name in names}
    if (selection.choice.runtime or suite.file.runtime) == "local":
        _check_local(suite, names, images)
    return make_plan(suite, selection.choice, pins=pins, kit_version=__version__)


def _check_local(suite: Suite, names: set[str], images: Images) -> None:
    """Refuse the local runtime for images that no lock can install."""
    if containers := sorted(name for name in names if not images.image(name).local):
        raise UsageError(
            f"suite {suite.name} cannot run locally: these are container images: "
            f"{', '.join(containers)}",
            usually="--runtime local was given for a suite that runs in containers",
            next_step=f"python -m harness plan {suite.name}",
        )
