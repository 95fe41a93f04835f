"""The verbs of the command line; each returns an exit code, or raises a `KitError`."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from harness.cli.choose import FALLBACK_SUITE, choose_images, choose_plan, choose_suite
from harness.cli.options import (
    BuildOptions,
    CheckOptions,
    ImageOptions,
    PlanOptions,
    PublishedOptions,
    ReportOptions,
    RunOptions,
    Selection,
)
from harness.clock import SystemClock
from harness.console import ConsoleProgress, Progress
from harness.data import clone, reports_folder
from harness.errors import EXIT_MEASURED, CellError, UsageError, printable
from harness.files import write_text
from harness.host.facts import read_host
from harness.host.fit import check_python
from harness.process import Owner
from harness.report import markdown
from harness.report.published import published_tables
from harness.report.render import write_report
from harness.results import validity
from harness.results.bench import read_bench_file
from harness.results.collect import Results
from harness.results.run_directory import RunDirectory
from harness.runner.describe import describe, describe_images, describe_record
from harness.runner.dry_run import DryRun
from harness.runner.planned_run import PlannedRun
from harness.runner.reference import reference_of
from harness.runner.run import Reproduction
from harness.runner.runtimes import RUNTIMES
from harness.runner.site import Site
from harness.runtime.base import Lines
from harness.runtime.docker_engine import connect
from harness.runtime.docker_images import ImageStore
from harness.runtime.images import Images, images_folder
from harness.suite.plan import Plan, plan_to_json
from harness.suite.read import PUBLISHED, read_suite, recipes_folder
from harness.suite.schema import json_schemas


def plan(options: PlanOptions, console: Console) -> int:
    """Print what would run, or every command of it."""
    selection = options.selection
    suite = choose_suite(selection.suite, read_host().facts, recipes_folder())
    planned = choose_plan(selection, suite, _images(selection.images))
    if options.dry_run:
        return _print_commands(selection, planned, console)
    if options.json:
        _print([json.dumps({"hash": planned.hash(), **plan_to_json(planned)}, indent=2)])
    else:
        _print(describe(planned, _images(selection.images)))
    return EXIT_MEASURED


def run(options: RunOptions, console: Console) -> int:
    """Measure what is not measured yet, and write the report."""
    selection, host = options.selection, read_host()
    check_python(host.facts.python)
    suite = choose_suite(selection.suite, host.facts, recipes_folder())
    planned = choose_plan(selection, suite, _images(selection.images))
    if options.dry_run:
        return _print_commands(selection, planned, console)
    progress = ConsoleProgress(console, SystemClock())
    progress.say(f"Host {host.facts.host_id}: {host.facts.summary()}.")
    if suite.name == FALLBACK_SUITE and not selection.suite:
        progress.say("No published suite was made for this host, so the smoke suite is used.")
    size = f"{len(planned.cells)} cells, runtime {planned.runtime}"
    progress.say(f"Suite {planned.suite}: {planned.title}, {size}.")
    if planned.notice:
        progress.say(planned.notice)
    site = replace(_site(selection), rebuild=options.rebuild, keep=options.keep)
    reproduction = Reproduction(
        plan=planned,
        site=site,
        host=host,
        reference=reference_of(suite, recipes_folder()),
        clock=SystemClock(),
        progress=progress,
    )
    outcome = reproduction.run(fresh=options.fresh, retry_failed=options.retry_failed)
    if outcome.remark:
        progress.say(outcome.remark)
    return _announce(outcome.directory, outcome.results)


def images(options: ImageOptions, console: Console) -> int:
    """List every image: its pin, where the pin comes from, and whether it is present, verified."""
    store = _store(options, ConsoleProgress(console, SystemClock()))
    _print(describe_images(store.images, store))
    return EXIT_MEASURED


def build(options: BuildOptions, console: Console) -> int:
    """Pull or build images, without running anything."""
    images = _images(options.images)
    every = images.file.images
    for name in options.names:
        images.image(name)
    store = _store(options.images, ConsoleProgress(console, SystemClock()))
    for name in options.names or [name for name, entry in every.items() if not entry.opt_in]:
        record = store.ensure(name, rebuild=options.rebuild)
        _print(describe_record(record))
    return EXIT_MEASURED


def _store(options: ImageOptions, progress: Progress) -> ImageStore:
    cache, clock = default_cache(), SystemClock()
    owner = Owner(f"{cache}/builds", cache / "logs" / "processes.jsonl", clock)
    return ImageStore(connect(), _images(options), cache, owner, clock, progress)


def report(options: ReportOptions) -> int:
    """Regenerate a run's report from its files."""
    directory = RunDirectory(options.directory)
    return _announce(directory, write_report(directory))


def check(options: CheckOptions) -> int:
    """Say whether a result file is a valid measurement."""
    bench = read_bench_file(options.file)
    findings = validity.check(bench, options.expected)
    verdict = "not a valid measurement" if findings.broken else "a valid measurement"
    _print([printable(f"{options.file}: {verdict} of {json.dumps(bench.model_id)}")])
    # Sentences quote the file, which can hold anything: a terminal must not obey it.
    _print(f"  broken: {printable(sentence)}" for sentence in findings.broken)
    if findings.skipped:
        _print([f"  not checked (not given): {', '.join(findings.skipped)}"])
    return CellError.exit_code if findings.broken else EXIT_MEASURED


def published(options: PublishedOptions) -> int:
    """Print the publication's own tables."""
    suite = read_suite(options.suite, recipes_folder())
    if suite.published is None:
        raise UsageError(
            f"suite {suite.name} has no publication",
            usually="the smoke suite was named, which reproduces nothing published",
            next_step=f"ls {recipes_folder()}/*/{PUBLISHED}",
        )
    _print([markdown.document(published_tables(suite.file, suite.published))])
    return EXIT_MEASURED


def schema() -> int:
    """Regenerate the JSON Schemas of recipes/.

    Raises:
        UsageError: the kit is installed as a package, whose recipes are not to be edited.
    """
    if clone() is None:
        raise UsageError(
            "recipes/schema/ can only be written in a clone of the repository",
            usually=f"the kit was installed as a package, whose recipes are in {recipes_folder()}",
            next_step="in a clone: pip install -e ., then python -m harness schema",
        )
    folder = recipes_folder() / "schema"
    for name, text in json_schemas().items():
        write_text(folder / name, text)
        _print([str(folder / name)])
    return EXIT_MEASURED


def _announce(directory: RunDirectory, results: Results) -> int:
    _print([f"{results.measured} of {len(results.cells)} cells measured", str(directory.report)])
    return EXIT_MEASURED if results.complete else CellError.exit_code


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        print(line)  # noqa: T201 - data for stdout


def _site(selection: Selection) -> Site:
    return Site(
        reports=_reports(selection),
        cache=default_cache(),
        images=_images(selection.images),
        model=selection.model.resolve() if selection.model else None,
        privileged=selection.privileged,
    )


def _images(options: ImageOptions) -> Images:
    return choose_images(options, images_folder())


def _print_commands(selection: Selection, plan: Plan, console: Console) -> int:
    clock = SystemClock()
    progress = ConsoleProgress(console, clock)
    directory = RunDirectory(_reports(selection) / f"{plan.suite}-RUN")
    site = _site(selection)
    owner = Owner("dry-run", Path(os.devnull), clock)
    lines: Lines = RUNTIMES[plan.runtime](site, owner=owner, clock=clock, progress=progress)
    run = PlannedRun(
        plan=plan, directory=directory, model_folder=site.model_folder(plan, directory)
    )
    own_model = site.model is not None
    _print(DryRun(run=run, lines=lines, rdma=site.rdma, own_model=own_model).commands())
    return EXIT_MEASURED


def _reports(selection: Selection) -> Path:
    return (selection.reports or reports_folder()).resolve()


def default_cache() -> Path:
    """Return where environments are kept between runs."""
    if given := os.environ.get("B300_REPRO_CACHE"):
        return Path(given).resolve()
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "b300-repro"
