"""From a command line to an exit code."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType

from rich.console import Console

from harness.cli import verbs
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
)
from harness.cli.parser import COMMAND, parse
from harness.errors import EXIT_INTERRUPTED, EXIT_MEASURED, KitError


def main(argv: Sequence[str] | None = None, prog: str = COMMAND) -> int:
    """Run one verb and return its exit code; ``prog`` is what the user typed before the verb."""
    console = Console(stderr=True)
    try:
        return _carry_out(parse(argv, prog), console)
    except KitError as error:
        console.print(error.render(), markup=False, highlight=False, soft_wrap=True)
        return error.exit_code
    except BrokenPipeError:  # `python -m harness plan | head`
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
        return EXIT_MEASURED


def _carry_out(options: Options, console: Console) -> int:
    try:
        signal.signal(signal.SIGINT, _stop_once)
        signal.signal(signal.SIGTERM, _stop_once)
        return _verb(options, console)
    except KeyboardInterrupt:
        kept = ": finished cells are kept, and the same command resumes the run"
        console.print(f"interrupted{kept if isinstance(options, RunOptions) else ''}")
        return EXIT_INTERRUPTED


def _verb(options: Options, console: Console) -> int:
    match options:
        case PlanOptions():
            return verbs.plan(options, console)
        case RunOptions():
            return verbs.run(options, console)
        case ImageOptions():
            return verbs.images(options, console)
        case BuildOptions():
            return verbs.build(options, console)
        case PublishedOptions():
            return verbs.published(options)
        case SchemaOptions():
            return verbs.schema()
        case CheckOptions():
            return verbs.check(options)
        case ReportOptions():
            return verbs.report(options)


def _stop_once(signum: int, frame: FrameType | None) -> None:  # noqa: ARG001 - signal's call
    """Turn the first signal into KeyboardInterrupt; later ones must not cut the clean-up short."""
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, _say_stopping)
    raise KeyboardInterrupt


def _say_stopping(signum: int, frame: FrameType | None) -> None:  # noqa: ARG001 - signal's call
    os.write(sys.stderr.fileno(), b"stopping the engines, please wait\n")
