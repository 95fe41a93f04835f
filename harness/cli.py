"""``python -m harness``: plan, run, images, build, report, check, published, schema.

Data goes to stdout, progress and errors to stderr. Exit codes: 0 all measured; 1 finished, but
some cell has no number; 2 wrong use; 3 host not fit; 4 image or installation; 5 an engine did not
start; 130 interrupted, the same command goes on.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from rich.console import Console

from harness import __version__, verbs
from harness.errors import EXIT_INTERRUPTED, EXIT_MEASURED, KitError

MOST_REPEATS = 1000
"""More is a slip of the finger: every cell of a plan is an object in memory."""


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
        kept = ": finished cells are kept, and the same command goes on there"
        console.print(f"interrupted{kept if options.verb is verbs.run else ''}")
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
    subparsers = parser.add_subparsers(required=True, metavar="VERB")

    plan = subparsers.add_parser("plan", help="print what would happen on this host, and how long")
    _add_selection(plan)
    form = plan.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="the plan as data")
    form.add_argument("--dry-run", action="store_true", help="print every command, run none")
    plan.set_defaults(verb=verbs.plan)

    run = subparsers.add_parser("run", help="measure, or go on with an unfinished run, and report")
    _add_selection(run)
    run.add_argument("--dry-run", action="store_true", help="print every command, run none")
    run.add_argument("--fresh", action="store_true", help="begin a new run in any case")
    run.add_argument(
        "--retry-failed", action="store_true", help="measure cells without a number again"
    )
    run.add_argument("--rebuild", action="store_true", help="make the engine environment anew")
    run.add_argument("--keep", action="store_true", help="leave ended containers, to look into")
    run.set_defaults(verb=verbs.run)

    images = subparsers.add_parser("images", help="list every image: pin, present, verified")
    _add_images(images)
    images.set_defaults(verb=verbs.images)

    build = subparsers.add_parser("build", help="pull or build images, and run nothing")
    build.add_argument("image", nargs="*", metavar="IMAGE", help="default: all")
    build.add_argument("--rebuild", action="store_true", help="also where it is there already")
    _add_images(build)
    build.set_defaults(verb=verbs.build)

    published = subparsers.add_parser("published", help="print the publication's own tables")
    published.add_argument("suite")
    published.set_defaults(verb=verbs.published)

    schema = subparsers.add_parser("schema", help="write recipes/schema/ anew, for editors")
    schema.set_defaults(verb=verbs.schema)

    checker = subparsers.add_parser(
        "check", help="apply the rules of a measurement to a result file"
    )
    checker.add_argument("file", type=Path, metavar="FILE")
    checker.add_argument("--model", help="served name that it must be of")
    for name in ("input", "output", "concurrency", "prompts"):
        checker.add_argument(f"--{name}", type=_positive, metavar="N")
    checker.set_defaults(verb=verbs.check)

    report = subparsers.add_parser("report", help="derive report.md from a run's files again")
    report.add_argument("directory", type=Path, metavar="RUN_DIRECTORY")
    report.set_defaults(verb=verbs.report)
    return parser


def _add_selection(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("suite", nargs="?", help="a folder of recipes/; default: by the host")
    parser.add_argument("--suite", dest="suite_option", metavar="NAME", help="the same, as option")
    parser.add_argument("--runtime", choices=["local", "docker"], help="default: the suite's")
    parser.add_argument("--load", metavar="NAME", help="how many requests; default: the suite's")
    parser.add_argument(
        "--only", action="append", default=[], metavar="RECIPE[/WORKLOAD]", help="can be repeated"
    )
    parser.add_argument("--repeats", type=_repeats, metavar="N", help="measure each cell N times")
    parser.add_argument("--reports", type=Path, default=None, help="where runs land")
    parser.add_argument(
        "--model", type=Path, metavar="FOLDER", help="the model, where you have it already"
    )
    parser.add_argument(
        "--privileged",
        action="store_true",
        help="last resort where RDMA fails: privileged containers for DeepInfer; recorded",
    )
    _add_images(parser)


def _add_images(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--base",
        action="append",
        type=_replacement,
        default=[],
        metavar="BASE=IMAGE",
        help="build on a local image in place of a locked base; recorded",
    )
    parser.add_argument(
        "--build-arg",
        action="append",
        type=_replacement,
        default=[],
        metavar="NAME=VALUE",
        help="a build argument in place of the lock's; recorded",
    )


def _replacement(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        msg = f"{text!r} is not NAME=VALUE"
        raise argparse.ArgumentTypeError(msg)
    return name, value


def _positive(text: str) -> int:
    if not text.lstrip("+-").isdecimal() or len(text) > 18:
        msg = f"{text!r} is no whole number of a sensible size"
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
