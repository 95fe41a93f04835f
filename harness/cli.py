"""``python -m harness``: plan, run, report, check, published, schema.

Data goes to stdout, progress and errors to stderr. Exit codes: 0 all measured; 1 finished, but
some cell has no number; 2 wrong use; 3 host not fit; 4 image or installation; 5 an engine did not
start; 130 interrupted, the same command goes on.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import FrameType

from rich.console import Console

from harness import __version__
from harness.clock import SystemClock
from harness.console import ConsoleProgress
from harness.errors import EXIT_INTERRUPTED, EXIT_MEASURED, CellError, KitError, UsageError
from harness.files import write_text
from harness.host.facts import HostFacts, HostReading, read_host
from harness.host.fit import check_python
from harness.measure.client import ClientModel
from harness.process import Owner
from harness.report.published import published_tables
from harness.report.render import write_report
from harness.results.bench import read_bench_file
from harness.results.collect import Results
from harness.results.run_directory import RunDirectory
from harness.results.validity import Expected, check
from harness.runner.describe import describe
from harness.runner.dry_run import DryRun
from harness.runner.reference import reference_of
from harness.runner.run import Reproduction, Site
from harness.runtime.base import Lines
from harness.runtime.docker_lines import DockerLines
from harness.runtime.images import images_folder, load_images, pin_of
from harness.runtime.local import LocalRuntime
from harness.suite.load import PUBLISHED, Suite, load_suite, recipes_folder, suite_names
from harness.suite.model import HubModel
from harness.suite.plan import Plan, plan_to_json
from harness.suite.planner import Choice, make_plan
from harness.suite.schema import json_schemas

FALLBACK_SUITE = "smoke"


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb and return its exit code."""
    options = _parser().parse_args(argv)
    console = Console(stderr=True)
    signal.signal(signal.SIGINT, _stop_once)
    signal.signal(signal.SIGTERM, _stop_once)
    try:
        code: int = options.verb(options, console)
    except KitError as error:
        console.print(error.render(), markup=False, highlight=False, soft_wrap=True)
        return error.exit_code
    except KeyboardInterrupt:
        console.print("interrupted: finished cells are kept, and the same command goes on there")
        return EXIT_INTERRUPTED
    except BrokenPipeError:  # `python -m harness plan | head`
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
        return EXIT_MEASURED
    return code


def _stop_once(signum: int, frame: FrameType | None) -> None:  # noqa: ARG001 - signal's call
    """Turn the first signal into KeyboardInterrupt; later ones must not cut the clean-up short."""
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, _say_stopping)
    raise KeyboardInterrupt


def _say_stopping(signum: int, frame: FrameType | None) -> None:  # noqa: ARG001 - signal's call
    os.write(sys.stderr.fileno(), b"stopping: engines are being ended, please wait\n")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m harness", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--version", action="version", version=f"b300-repro {__version__}")
    verbs = parser.add_subparsers(required=True, metavar="VERB")

    plan = verbs.add_parser("plan", help="print what would happen on this host, and how long")
    _add_selection(plan)
    plan.add_argument("--json", action="store_true", help="the plan as data")
    plan.set_defaults(verb=_plan)

    run = verbs.add_parser("run", help="measure, or go on with an unfinished run, and report")
    _add_selection(run)
    run.add_argument("--fresh", action="store_true", help="begin a new run in any case")
    run.add_argument("--reinstall", action="store_true", help="make the engine environment anew")
    run.set_defaults(verb=_run)

    published = verbs.add_parser("published", help="print the publication's own tables")
    published.add_argument("suite")
    published.set_defaults(verb=_published)

    schema = verbs.add_parser("schema", help="write recipes/schema/ anew, for editors")
    schema.set_defaults(verb=_schema)

    checker = verbs.add_parser("check", help="apply the rules of a measurement to a result file")
    checker.add_argument("file", type=Path, metavar="FILE")
    checker.add_argument("--model", help="served name that it must be of")
    for name in ("input", "output", "concurrency", "prompts"):
        checker.add_argument(f"--{name}", type=_positive, metavar="N")
    checker.set_defaults(verb=_check)

    report = verbs.add_parser("report", help="derive report.md from a run's files again")
    report.add_argument("directory", type=Path, metavar="RUN_DIRECTORY")
    report.set_defaults(verb=_report)
    return parser


def _add_selection(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("suite", nargs="?", help="a folder of recipes/; default: by the host")
    parser.add_argument("--suite", dest="suite_option", metavar="NAME", help="the same, as option")
    parser.add_argument("--runtime", choices=["local", "docker"], help="default: the suite's")
    parser.add_argument("--load", metavar="NAME", help="how many requests; default: the suite's")
    parser.add_argument(
        "--only", action="append", default=[], metavar="RECIPE[/WORKLOAD]", help="can be repeated"
    )
    parser.add_argument("--repeats", type=_positive, metavar="N", help="measure each cell N times")
    parser.add_argument("--dry-run", action="store_true", help="print every command, run none")
    parser.add_argument("--reports", type=Path, default=None, help="where runs land")


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        msg = f"must be 1 or more, not {value}"
        raise argparse.ArgumentTypeError(msg)
    return value


def _plan(options: argparse.Namespace, console: Console) -> int:
    host = read_host()
    plan = _make_plan(options, _choose_suite(options, host.facts))
    if options.dry_run:
        return _print_commands(options, plan, host, console)
    if options.json:
        _print([json.dumps({"hash": plan.hash(), **plan_to_json(plan)}, indent=2)])
    else:
        _print(describe(plan, load_images(images_folder())))
    return EXIT_MEASURED


def _run(options: argparse.Namespace, console: Console) -> int:
    host = read_host()
    check_python(host.facts.python)
    suite = _choose_suite(options, host.facts)
    plan = _make_plan(options, suite)
    if options.dry_run:
        return _print_commands(options, plan, host, console)
    progress = ConsoleProgress(console, SystemClock())
    progress.say(f"Host {host.facts.host_id}: {host.facts.summary()}.")
    progress.say(
        f"Suite {plan.suite}: {plan.title}, {len(plan.cells)} cells, runtime {plan.runtime}."
    )
    if plan.notice:
        progress.say(plan.notice)
    site = Site(
        reports=_reports(options),
        cache=default_cache(),
        images=images_folder(),
        reinstall=options.reinstall,
    )
    reproduction = Reproduction(
        plan=plan,
        site=site,
        host=host,
        reference=reference_of(suite, recipes_folder()),
        clock=SystemClock(),
        progress=progress,
    )
    outcome = reproduction.run(fresh=options.fresh)
    if outcome.already_finished:
        progress.say("This plan is measured on this host already; --fresh measures it again.")
    return _announce(outcome.directory, outcome.results)


def _report(options: argparse.Namespace, console: Console) -> int:  # noqa: ARG001 - a verb's call
    directory = RunDirectory(options.directory)
    return _announce(directory, write_report(directory))


def _check(options: argparse.Namespace, console: Console) -> int:  # noqa: ARG001 - a verb's call
    expected = Expected(
        model=options.model,
        input_len=options.input,
        output_len=options.output,
        concurrency=options.concurrency,
        prompts=options.prompts,
    )
    bench = read_bench_file(options.file)
    findings = check(bench, expected)
    verdict = "not a valid measurement" if findings.broken else "a valid measurement"
    _print([f"{options.file}: {verdict} of {json.dumps(bench.model_id)}"])
    _print(f"  broken: {sentence}" for sentence in findings.broken)
    if findings.skipped:
        _print([f"  not checked, for want of: {', '.join(findings.skipped)}"])
    return CellError.exit_code if findings.broken else EXIT_MEASURED


def _published(options: argparse.Namespace, console: Console) -> int:  # noqa: ARG001 - as above
    suite = load_suite(options.suite, recipes_folder())
    if suite.published is None:
        raise UsageError(
            f"suite {suite.name} has no publication",
            usually="the smoke suite was named, which reproduces nothing published",
            next_step=f"ls {recipes_folder()}/*/{PUBLISHED}",
        )
    _print(published_tables(suite.file, suite.published))
    return EXIT_MEASURED


def _schema(options: argparse.Namespace, console: Console) -> int:  # noqa: ARG001 - as above
    folder = recipes_folder() / "schema"
    for name, text in json_schemas().items():
        write_text(folder / name, text)
        _print([str(folder / name)])
    return EXIT_MEASURED


def _announce(directory: RunDirectory, results: Results) -> int:
    measured = sum(each.status == "measured" for each in results.cells)
    _print([f"{measured} of {len(results.cells)} cells measured", str(directory.report)])
    return EXIT_MEASURED if results.complete else CellError.exit_code


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
        return load_suite(name, root)
    suites = [load_suite(name, root) for name in suite_names(root)]
    for suite in suites:
        if suite.file.hardware and facts.matches(suite.file.hardware):
            return suite
    return next(suite for suite in suites if suite.name == FALLBACK_SUITE)


def _make_plan(options: argparse.Namespace, suite: Suite) -> Plan:
    images = {recipe.image for recipe in suite.recipes.values()}
    choice = Choice(
        runtime=options.runtime,
        load=options.load,
        repeats=options.repeats,
        only=tuple(options.only),
    )
    pins = {image: pin_of(image, images_folder()) for image in images}
    return make_plan(suite, choice, pins=pins, kit_version=__version__)


def _print_commands(
    options: argparse.Namespace, plan: Plan, host: HostReading, console: Console
) -> int:
    clock, cache = SystemClock(), default_cache()
    directory = RunDirectory(_reports(options) / f"{plan.suite}-RUN")
    folder = directory.model(plan.model.name)
    if isinstance(plan.model, HubModel):
        folder = cache / "models" / plan.model.repository.replace("/", "--")
    if plan.runtime == "docker":
        lines: Lines = DockerLines(images_folder(), cache, directory.path, folder)
    else:
        lines = LocalRuntime(
            images=images_folder(),
            cache=cache,
            facts=host.facts,
            owner=Owner("dry-run", Path(os.devnull), clock),
            clock=clock,
            progress=ConsoleProgress(console, clock),
        )
    model = ClientModel(
        name=plan.model.name, folder=str(folder), tokenizer_mode=plan.model.tokenizer_mode
    )
    _print(DryRun(plan=plan, lines=lines, directory=directory, model=model).commands())
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
