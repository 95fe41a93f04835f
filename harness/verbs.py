"""The verbs of the command line; each returns an exit code, or raises a `KitError`."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from harness import __version__
from harness.clock import SystemClock
from harness.console import ConsoleProgress, Progress
from harness.errors import EXIT_MEASURED, CellError, UsageError
from harness.files import write_text
from harness.host.facts import HostFacts, read_host
from harness.host.fit import check_python
from harness.process import Owner
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
from harness.suite.planner import Choice, make_plan
from harness.suite.read import (
    PUBLISHED,
    Suite,
    nearest,
    read_suite,
    recipes_folder,
    suite_names,
)
from harness.suite.schema import json_schemas

FALLBACK_SUITE = "smoke"
"""Taken where no suite was made for the host."""


def plan(options: argparse.Namespace, console: Console) -> int:
    """Print what would happen, or every command of it."""
    host = read_host()
    planned = _make_plan(options, _choose_suite(options, host.facts))
    if options.dry_run:
        return _print_commands(options, planned, console)
    if options.json:
        _print([json.dumps({"hash": planned.hash(), **plan_to_json(planned)}, indent=2)])
    else:
        _print(describe(planned, _images(options)))
    return EXIT_MEASURED


def run(options: argparse.Namespace, console: Console) -> int:
    """Measure what is not measured yet, and write the report."""
    host = read_host()
    check_python(host.facts.python)
    suite = _choose_suite(options, host.facts)
    planned = _make_plan(options, suite)
    if options.dry_run:
        return _print_commands(options, planned, console)
    progress = ConsoleProgress(console, SystemClock())
    progress.say(f"Host {host.facts.host_id}: {host.facts.summary()}.")
    if suite.name == FALLBACK_SUITE and not (options.suite or options.suite_option):
        progress.say("No published suite is made for this host, so the smoke suite is taken.")
    size = f"{len(planned.cells)} cells, runtime {planned.runtime}"
    progress.say(f"Suite {planned.suite}: {planned.title}, {size}.")
    if planned.notice:
        progress.say(planned.notice)
    site = replace(_site(options), rebuild=options.rebuild, keep=options.keep)
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


def images(options: argparse.Namespace, console: Console) -> int:
    """List every image: its pin, where the pin comes from, and whether it is here, verified."""
    store = _store(options, ConsoleProgress(console, SystemClock()))
    _print(describe_images(store.images, store))
    return EXIT_MEASURED


def build(options: argparse.Namespace, console: Console) -> int:
    """Pull or build images, and run nothing."""
    progress = ConsoleProgress(console, SystemClock())
    store = _store(options, progress)
    for name in options.image:
        store.images.image(name)
    every = store.images.file.images
    for name in options.image or [name for name, entry in every.items() if not entry.opt_in]:
        record = store.ensure(name, rebuild=options.rebuild)
        _print(describe_record(record))
    return EXIT_MEASURED


def _store(options: argparse.Namespace, progress: Progress) -> ImageStore:
    cache, clock = default_cache(), SystemClock()
    owner = Owner(f"{cache}/builds", cache / "logs" / "processes.jsonl", clock)
    return ImageStore(connect(), _images(options), cache, owner, clock, progress)


def report(options: argparse.Namespace, console: Console) -> int:  # noqa: ARG001
    """Derive a run's report from its files again."""
    directory = RunDirectory(options.directory)
    return _announce(directory, write_report(directory))


def check(options: argparse.Namespace, console: Console) -> int:  # noqa: ARG001
    """Say whether a result file is a measurement."""
    expected = validity.Expected(
        model=options.model,
        input_len=options.input,
        output_len=options.output,
        concurrency=options.concurrency,
        prompts=options.prompts,
    )
    bench = read_bench_file(options.file)
    findings = validity.check(bench, expected)
    verdict = "not a valid measurement" if findings.broken else "a valid measurement"
    _print([f"{options.file}: {verdict} of {json.dumps(bench.model_id)}"])
    # Sentences quote the file, which can hold anything: a terminal must not obey it.
    _print(f"  broken: {_printable(sentence)}" for sentence in findings.broken)
    if findings.skipped:
        _print([f"  not checked, for want of: {', '.join(findings.skipped)}"])
    return CellError.exit_code if findings.broken else EXIT_MEASURED


def published(options: argparse.Namespace, console: Console) -> int:  # noqa: ARG001
    """Print the publication's own tables."""
    suite = read_suite(options.suite, recipes_folder())
    if suite.published is None:
        raise UsageError(
            f"suite {suite.name} has no publication",
            usually="the smoke suite was named, which reproduces nothing published",
            next_step=f"ls {recipes_folder()}/*/{PUBLISHED}",
        )
    _print(published_tables(suite.file, suite.published))
    return EXIT_MEASURED


def schema(options: argparse.Namespace, console: Console) -> int:  # noqa: ARG001
    """Write the JSON Schemas of recipes/ anew."""
    folder = recipes_folder() / "schema"
    for name, text in json_schemas().items():
        write_text(folder / name, text)
        _print([str(folder / name)])
    return EXIT_MEASURED


def _announce(directory: RunDirectory, results: Results) -> int:
    _print([f"{results.measured} of {len(results.cells)} cells measured", str(directory.report)])
    return EXIT_MEASURED if results.complete else CellError.exit_code


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        print(line)  # noqa: T201 - data for stdout


def _choose_suite(options: argparse.Namespace, facts: HostFacts) -> Suite:
    """Take the suite that was named, else the one made for this host, else the smoke suite."""
    if options.suite and options.suite_option and options.suite != options.suite_option:
        raise UsageError(
            f"two suites are named: {options.suite} and {options.suite_option}",
            usually="both the argument and --suite were given",
            next_step="name one of them",
        )
    root = recipes_folder()
    if name := options.suite or options.suite_option:
        return read_suite(name, root)
    suites = [read_suite(name, root) for name in suite_names(root)]
    for suite in suites:
        if suite.file.hardware and facts.matches(suite.file.hardware):
            return suite
    return read_suite(FALLBACK_SUITE, root)


def _make_plan(options: argparse.Namespace, suite: Suite) -> Plan:
    names, images = {recipe.image for recipe in suite.recipes.values()}, _images(options)
    choice = Choice(
        runtime=options.runtime,
        load=options.load,
        repeats=options.repeats,
        only=tuple(options.only),
    )
    pins = {name: images.pin(name) for name in names}
    if (options.runtime or suite.file.runtime) == "local":
        _check_local(suite, names, images)
    return make_plan(suite, choice, pins=pins, kit_version=__version__)


def _site(options: argparse.Namespace) -> Site:
    return Site(
        reports=_reports(options),
        cache=default_cache(),
        images=_images(options),
        model=options.model.resolve() if options.model else None,
        privileged=options.privileged,
    )


def _images(options: argparse.Namespace) -> Images:
    """Return the lock of docker/, with the bases that the user replaces by local images."""
    replaced = dict(options.base)
    images = Images(images_folder(), replaced, dict(options.build_arg))
    if unknown := sorted(set(replaced) - set(images.file.bases)):
        known = images.file.bases
        raise UsageError(
            f"--base {unknown[0]}: there is no such base{nearest(unknown[0], known)}",
            usually=f"the bases of docker/images.lock.yaml are: {', '.join(known)}",
            next_step="python -m harness images",
        )
    return images


def _check_local(suite: Suite, names: set[str], images: Images) -> None:
    """Refuse the local runtime for images that no lock can install."""
    if containers := sorted(name for name in names if not images.image(name).local):
        raise UsageError(
            f"suite {suite.name} cannot run locally: {', '.join(containers)} are container images",
            usually="--runtime local was given for a suite of containers",
            next_step=f"python -m harness plan {suite.name}",
        )


def _print_commands(options: argparse.Namespace, plan: Plan, console: Console) -> int:
    clock = SystemClock()
    progress = ConsoleProgress(console, clock)
    directory = RunDirectory(_reports(options) / f"{plan.suite}-RUN")
    site = _site(options)
    owner = Owner("dry-run", Path(os.devnull), clock)
    lines: Lines = RUNTIMES[plan.runtime](site, owner=owner, clock=clock, progress=progress)
    run = PlannedRun(
        plan=plan, directory=directory, model_folder=site.model_folder(plan, directory)
    )
    own_model = site.model is not None
    _print(DryRun(run=run, lines=lines, rdma=site.rdma, own_model=own_model).commands())
    return EXIT_MEASURED


def _reports(options: argparse.Namespace) -> Path:
    given: Path | None = options.reports
    return (given or recipes_folder().parent / "reports").resolve()


def default_cache() -> Path:
    """Return where environments are kept between runs."""
    if given := os.environ.get("B300_REPRO_CACHE"):
        return Path(given).resolve()
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "b300-repro"
