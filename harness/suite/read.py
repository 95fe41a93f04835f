"""Read a suite's folder into a checked `Suite`; every error names file, line and nearest name."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import yaml
from harness.data import data_folder
from harness.errors import UsageError
from harness.suite.model import SuiteFile
from harness.suite.published import PublishedFile
from harness.suite.recipe import RecipeFile
from harness.validation import nearest, validate

PUBLISHED = "published.yaml"
NOT_RECIPES = ("suite", "published")


@dataclass(frozen=True)
class Suite:
    """A suite's files, read and checked against each other."""

    name: str
    file: SuiteFile
    recipes: dict[str, RecipeFile]
    published: PublishedFile | None = None


def recipes_folder() -> Path:
    """Return the folder of the suites that come with the kit."""
    return data_folder("recipes")


def suite_names(root: Path) -> list[str]:
    """Return the suites under ``root``, in the order of their names."""
    return sorted(path.parent.name for path in root.glob("*/suite.yaml"))


def read_suite(name: str, root: Path) -> Suite:
    """Read ``root/name/``.

    Raises:
        UsageError: no such suite, or a file that breaks the schema.
    """
    names = suite_names(root)
    if name not in names:
        raise UsageError(
            f"unknown suite {name!r}{nearest(name, names)}",
            usually=f"the suites are: {', '.join(names) or 'none'}",
            next_step="python -m harness plan SUITE",
        )
    found = _read_alone(root / name)
    _check_compared(found, root)
    return found


def _read_alone(folder: Path) -> Suite:
    """Read a suite without a look at the one that it is compared with."""
    document = yaml.read(folder / "suite.yaml")
    suite = validate(document, SuiteFile)
    documents = {
        path.stem: yaml.read(path)
        for path in sorted(folder.glob("*.yaml"))
        if path.stem not in NOT_RECIPES
    }
    # Whole recipes first: a mistake in one must not be reported for those that extend it.
    whole_first = sorted(documents, key=lambda recipe: "extends" in (documents[recipe].data or {}))
    recipes = {
        recipe: validate(_with_base(documents[recipe], documents), RecipeFile)
        for recipe in whole_first
    }
    _check_references(document, suite, recipes)
    for recipe, whole in recipes.items():
        for index, sizing in enumerate(whole.sizing):
            for place, workload in enumerate(sizing.workloads):
                where = ("sizing", index, "workloads", place)
                _check_name(documents[recipe], "workload", workload, suite.workloads, where)
    published = _read_published(folder / PUBLISHED, suite, recipes)
    return Suite(folder.name, suite, recipes, published)


def _read_published(
    path: Path, suite: SuiteFile, recipes: dict[str, RecipeFile]
) -> PublishedFile | None:
    """Read the publication's claims, where the suite has a publication."""
    if not path.exists():
        return None
    document = yaml.read(path)
    published = validate(document, PublishedFile)
    planned = {f"{each.recipe}/{name}" for each in suite.sessions for name in each.workloads}
    for index, claim in enumerate(published.claims):
        if by := claim.measured_by:
            where = ("claims", index, "measured_by")
            _check_name(document, "workload", by.workload, suite.workloads, where)
            for recipe in by.recipes:
                _check_name(document, "recipe", recipe, recipes, where)
                _check_name(document, "cell", f"{recipe}/{by.workload}", planned, where)
    tables = [*(table.id for table in suite.tables), *(each.id for each in published.text_tables)]
    for index, table in enumerate(published.order):
        _check_name(document, "table", table, tables, ("order", index))
    return published


def _with_base(document: yaml.Document, documents: dict[str, yaml.Document]) -> yaml.Document:
    """Apply the differences of a recipe with ``extends`` to its base, one level deep."""
    if not isinstance(document.data, dict) or "extends" not in document.data:
        return document
    name = document.data["extends"]
    others = [other for other in documents if documents[other] is not document]
    if name not in others:
        line = document.line_of(("extends",))
        raise UsageError(
            f"{document.path}:{line}: unknown recipe {name!r}{nearest(str(name), others)}",
            usually=f"this suite has: {', '.join(others) or 'no other recipe'}",
            next_step=f"open {document.path} at line {line}",
        )
    base = documents[name].data
    if "extends" in base:
        line = document.line_of(("extends",))
        raise UsageError(
            f"{document.path}:{line}: {name!r} itself extends a recipe",
            usually="a reader should find every setting in at most two files",
            next_step=f"extend {base['extends']!r} instead",
        )
    own = document.data
    _check_differences(document, base)
    data = {**base, **own}
    for section in ("args", "env", "why"):
        if isinstance(own.get(section, {}), dict):
            data[section] = {**base.get(section, {}), **own.get(section, {})}
    settings = [data[section] for section in ("args", "env") if isinstance(data[section], dict)]
    removed = {key for section in settings for key, value in section.items() if value is None}
    for section in ("args", "env", "why"):
        if isinstance(data[section], dict):
            data[section] = {k: v for k, v in data[section].items() if k not in removed}
    return yaml.Document(document.path, data, document.lines)


def _check_differences(document: yaml.Document, base: dict[str, Any]) -> None:
    """Refuse a difference that removes nothing, or that keeps the reason of its base.

    A misspelt name with null would leave the setting as it is: the variant would be no variant.
    """
    own, why = document.data, document.data.get("why") or {}
    for section in ("args", "env"):
        settings = own.get(section)
        inherited = base.get(section) or {}
        for name, value in settings.items() if isinstance(settings, dict) else ():
            line = document.line_of((section, name))
            where = f"{document.path}:{line}: {section}.{name}"
            if value is None and name not in inherited:
                raise UsageError(
                    f"{where}: removes a setting that {own['extends']!r} does not have"
                    f"{nearest(name, inherited)}",
                    usually="the name is misspelt, and the setting would silently remain",
                    next_step=f"open {document.path} at line {line}",
                )
            if value != inherited.get(name) and isinstance(why, dict) and name not in why:
                raise UsageError(
                    f"{where}: differs from {own['extends']!r} without a reason of its own",
                    usually="the other recipe's reason explains the other value",
                    next_step=f"add it under `why` in {document.path}",
                )


def _check_references(
    document: yaml.Document, suite: SuiteFile, recipes: dict[str, RecipeFile]
) -> None:
    """Check every name by which one part of the suite refers to another."""
    for index, session in enumerate(suite.sessions):
        _check_name(document, "recipe", session.recipe, recipes, ("sessions", index, "recipe"))
        for place, workload in enumerate(session.workloads):
            where: yaml.Location = ("sessions", index, "workloads", place)
            _check_name(document, "workload", workload, suite.workloads, where)
            recipe = recipes[session.recipe]
            if suite.workloads[workload].request_rate and not recipe.settings.served:
                raise _no_arrivals(document, workload, session.recipe, where)
    for number, table in enumerate(suite.tables):
        for index, row in enumerate(table.rows):
            where = ("tables", number, "rows", index, "workload")
            _check_name(document, "workload", row.workload, suite.workloads, where)
        for index, column in enumerate(table.columns):
            for name in (column.recipe, *(column.ratio or ())):
                if name is not None:
                    where = ("tables", number, "columns", index)
                    _check_name(document, "recipe", name, recipes, where)


def _no_arrivals(
    document: yaml.Document, workload: str, recipe: str, location: yaml.Location
) -> UsageError:
    line = document.line_of(location)
    return UsageError(
        f"{document.path}:{line}: workload {workload!r} has a request rate, and recipe {recipe!r} "
        "has no server for requests to arrive at",
        usually="a workload with a request rate was planned for an in-process engine",
        next_step="give the workload a concurrency, or plan it only for engines with a server",
    )


def _check_compared(own: Suite, root: Path) -> None:
    """Check the names by which a suite is compared with another one's publication."""
    names = own.file.compares_with
    if names is None:
        return
    document = yaml.read(root / own.name / "suite.yaml")
    where: yaml.Location = ("compares_with",)
    _check_name(document, "suite", names.suite, suite_names(root), (*where, "suite"))
    other = _read_alone(root / names.suite)
    for kind, there, here, pairs in (
        ("recipe", other.recipes, own.recipes, names.recipes),
        ("workload", other.file.workloads, own.file.workloads, names.workloads),
    ):
        for theirs, ours in pairs.items():
            place = (*where, f"{kind}s", theirs)
            _check_name(document, kind, theirs, there, place)
            _check_name(document, kind, ours, here, place)


def _check_name(
    document: yaml.Document,
    kind: str,
    name: str,
    known: Collection[str],
    location: yaml.Location,
) -> None:
    if name in known:
        return
    line = document.line_of(location)
    raise UsageError(
        f"{document.path}:{line}: unknown {kind} {name!r}{nearest(name, known)}",
        usually=f"this suite has: {', '.join(sorted(known)) or 'none'}",
        next_step=f"open {document.path} at line {line}",
    )
