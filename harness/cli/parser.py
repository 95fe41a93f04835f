"""Verbs: plan, run, images, build, report, check, published, schema.

Data goes to stdout, progress and errors to stderr. Exit codes: 0 every cell was measured;
1 finished, but some cells have no number; 2 usage error; 3 unsuitable host; 4 image or
installation; 5 an engine did not start, or stopped; 130 interrupted, and the same command resumes
the run.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from harness import __version__
from harness.cli.options import (
    BuildOptions,
    CheckOptions,
    ImageOptions,
    Options,
    PlanOptions,
    PublishedOptions,
    ReportOptions,
    RunOptions,
    SchemaOptions,
    Selection,
)
from harness.errors import UsageError
from harness.results.validity import Expected
from harness.suite.planner import Choice

COMMAND = "b300-repro"
"""The console script, and the name of the distribution."""
MOST_REPEATS = 1000
"""More is surely a typo, and every cell of a plan is an object in memory."""


def parse(argv: Sequence[str] | None = None, prog: str = COMMAND) -> Options:
    """Return the options of the verb that ``argv`` names; the default is this process's ``argv``.

    ``prog`` is what usage lines call the command.

    Raises:
        UsageError: options that contradict each other.
        SystemExit: argparse's own, after `--help`, `--version` or a usage error (2).
    """
    given = _parser(prog).parse_args(argv)
    options: Options = given.options(given)
    return options


def _parser(prog: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=prog, description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--version", action="version", version=f"{COMMAND} {__version__}")
    subparsers = parser.add_subparsers(required=True, metavar="VERB")

    plan = subparsers.add_parser("plan", help="print what would run on this host, and how long")
    _add_selection(plan)
    form = plan.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print the plan as JSON")
    form.add_argument("--dry-run", action="store_true", help="print every command, run none")
    plan.set_defaults(options=_plan)

    run = subparsers.add_parser(
        "run", help="measure, resuming an unfinished run, and write the report"
    )
    _add_selection(run)
    run.add_argument("--dry-run", action="store_true", help="print every command, run none")
    run.add_argument("--fresh", action="store_true", help="always start a new run")
    run.add_argument(
        "--retry-failed", action="store_true", help="measure the cells without a number again"
    )
    run.add_argument("--rebuild", action="store_true", help="rebuild images and environments")
    run.add_argument("--keep", action="store_true", help="keep exited containers for inspection")
    run.set_defaults(options=_run)

    images = subparsers.add_parser(
        "images", help="list every image: its pin, whether present and verified"
    )
    _add_images(images)
    images.set_defaults(options=_images)

    build = subparsers.add_parser("build", help="pull or build images, without running anything")
    build.add_argument("image", nargs="*", metavar="IMAGE", help="default: all")
    build.add_argument("--rebuild", action="store_true", help="even if it is already present")
    _add_images(build)
    build.set_defaults(options=_build)

    published = subparsers.add_parser("published", help="print the publication's own tables")
    published.add_argument("suite")
    published.set_defaults(options=_published)

    schema = subparsers.add_parser("schema", help="regenerate recipes/schema/, for editors")
    schema.set_defaults(options=_schema)

    checker = subparsers.add_parser(
        "check", help="check whether a result file is a valid measurement"
    )
    checker.add_argument("file", type=Path, metavar="FILE")
    checker.add_argument("--model", help="the served model name that it must have")
    for name in ("input", "output", "concurrency", "prompts"):
        checker.add_argument(f"--{name}", type=_positive, metavar="N")
    checker.set_defaults(options=_check)

    report = subparsers.add_parser("report", help="regenerate report.md from a run's files")
    report.add_argument("directory", type=Path, metavar="RUN_DIRECTORY")
    report.set_defaults(options=_report)
    return parser


def _add_selection(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("suite", nargs="?", help="a folder under recipes/; default: by host")
    parser.add_argument(
        "--suite", dest="suite_option", metavar="NAME", help="the same, as an option"
    )
    parser.add_argument("--runtime", choices=["local", "docker"], help="default: the suite's")
    parser.add_argument("--load", metavar="NAME", help="load level; default: the suite's first")
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="RECIPE[/WORKLOAD]",
        help="only this recipe, or this workload of it; can be repeated",
    )
    parser.add_argument("--repeats", type=_repeats, metavar="N", help="measure each cell N times")
    parser.add_argument("--reports", type=Path, default=None, help="where runs land")
    parser.add_argument(
        "--model", type=Path, metavar="FOLDER", help="folder of the model, if you already have it"
    )
    parser.add_argument(
        "--privileged",
        action="store_true",
        help="last resort if RDMA fails: privileged containers for what needs it; recorded",
    )
    _add_images(parser)


def _add_images(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--base",
        action="append",
        type=_replacement,
        default=[],
        metavar="BASE=IMAGE",
        help="build on a local image instead of a locked base; recorded",
    )
    parser.add_argument(
        "--build-arg",
        action="append",
        type=_replacement,
        default=[],
        metavar="NAME=VALUE",
        help="override a build argument of the lock; recorded",
    )


def _plan(given: argparse.Namespace) -> PlanOptions:
    return PlanOptions(selection=_selection(given), json=given.json, dry_run=given.dry_run)


def _run(given: argparse.Namespace) -> RunOptions:
    return RunOptions(
        selection=_selection(given),
        dry_run=given.dry_run,
        fresh=given.fresh,
        retry_failed=given.retry_failed,
        rebuild=given.rebuild,
        keep=given.keep,
    )


def _selection(given: argparse.Namespace) -> Selection:
    if given.suite and given.suite_option and given.suite != given.suite_option:
        raise UsageError(
            f"two suites were named: {given.suite} and {given.suite_option}",
            usually="both the argument and --suite were given",
            next_step="name only one of them",
        )
    return Selection(
        suite=given.suite or given.suite_option,
        choice=Choice(
            runtime=given.runtime,
            load=given.load,
            repeats=given.repeats,
            only=tuple(given.only),
        ),
        reports=given.reports,
        model=given.model,
        privileged=given.privileged,
        images=_images(given),
    )


def _images(given: argparse.Namespace) -> ImageOptions:
    return ImageOptions(bases=dict(given.base), build_args=dict(given.build_arg))


def _build(given: argparse.Namespace) -> BuildOptions:
    return BuildOptions(names=tuple(given.image), rebuild=given.rebuild, images=_images(given))


def _published(given: argparse.Namespace) -> PublishedOptions:
    return PublishedOptions(suite=given.suite)


def _schema(given: argparse.Namespace) -> SchemaOptions:  # noqa: ARG001 - the parser's call
    return SchemaOptions()


def _check(given: argparse.Namespace) -> CheckOptions:
    expected = Expected(
        model=given.model,
        input_len=given.input,
        output_len=given.output,
        concurrency=given.concurrency,
        prompts=given.prompts,
    )
    return CheckOptions(file=given.file, expected=expected)


def _report(given: argparse.Namespace) -> ReportOptions:
    return ReportOptions(directory=given.directory)


def _replacement(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        msg = f"{text!r} is not NAME=VALUE"
        raise argparse.ArgumentTypeError(msg)
    return name, value


def _positive(text: str) -> int:
    if not text.lstrip("+-").isdecimal() or len(text) > 18:
        msg = f"{text!r} is not a whole number of a sensible size"
        raise argparse.ArgumentTypeError(msg)
    value = int(text)
    if value < 1:
        msg = f"must be 1 or more, not {value}"
        raise argparse.ArgumentTypeError(msg)
    return value


def _repeats(text: str) -> int:
    value = _positive(text)
    if value > MOST_REPEATS:
        msg = f"must be {MOST_REPEATS} or less, not {value}"
        raise argparse.ArgumentTypeError(msg)
    return value
