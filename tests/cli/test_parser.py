"""Every flag of the command line reaches the options of its verb."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from harness.cli.options import (
    BuildOptions,
    CheckOptions,
    ImageOptions,
    PlanOptions,
    PublishedOptions,
    ReportOptions,
    RunOptions,
    SchemaOptions,
    Selection,
)
from harness.cli.parser import parse
from harness.errors import UsageError
from harness.results.validity import Expected
from harness.suite.planner import Choice

NOTHING = Selection(
    suite=None,
    choice=Choice(),
    reports=None,
    model=None,
    privileged=False,
    images=ImageOptions(bases={}, build_args={}),
)


def test_without_flags_nothing_is_chosen() -> None:
    assert parse(["plan"]) == PlanOptions(selection=NOTHING, json=False, dry_run=False)
    assert parse(["run"]) == RunOptions(
        selection=NOTHING,
        dry_run=False,
        fresh=False,
        retry_failed=False,
        rebuild=False,
        keep=False,
    )
    assert parse(["build"]) == BuildOptions(names=(), rebuild=False, images=NOTHING.images)
    assert parse(["images"]) == NOTHING.images
    assert parse(["schema"]) == SchemaOptions()
    assert parse(["check", "f"]) == CheckOptions(file=Path("f"), expected=Expected())


def test_every_flag_of_a_selection() -> None:
    line = (
        "plan a --runtime docker --load steady --only b --only c/d --repeats 3 --reports /r "
        "--model /m --privileged --base e=f --build-arg G=h=i --json"
    )
    options = parse(shlex.split(line))
    selection = Selection(
        suite="a",
        choice=Choice(runtime="docker", load="steady", only=("b", "c/d"), repeats=3),
        reports=Path("/r"),
        model=Path("/m"),
        privileged=True,
        images=ImageOptions(bases={"e": "f"}, build_args={"G": "h=i"}),
    )
    assert options == PlanOptions(selection=selection, json=True, dry_run=False)


def test_a_suite_can_be_an_option() -> None:
    options = parse(["plan", "--suite", "a"])
    assert isinstance(options, PlanOptions)
    assert options.selection.suite == "a"
    assert parse(["plan", "a", "--suite", "a"]) == options
    with pytest.raises(UsageError, match="two suites were named: a and b"):
        parse(["plan", "a", "--suite", "b"])


@pytest.mark.parametrize("flag", ["dry_run", "fresh", "retry_failed", "rebuild", "keep"])
def test_flags_of_a_run(flag: str) -> None:
    options = parse(["run", f"--{flag.replace('_', '-')}"])
    assert isinstance(options, RunOptions)
    flags = {name: value for name, value in vars(options).items() if name != "selection"}
    assert [name for name, value in flags.items() if value] == [flag]


def test_other_verbs() -> None:
    assert parse(["published", "a"]) == PublishedOptions(suite="a")
    assert parse(["report", "d"]) == ReportOptions(directory=Path("d"))
    assert parse(["build", "a", "b", "--rebuild", "--base", "c=d"]) == BuildOptions(
        names=("a", "b"), rebuild=True, images=ImageOptions(bases={"c": "d"}, build_args={})
    )
    line = "check f --model m --input 1 --output 2 --concurrency 3 --prompts 4"
    expected = Expected(model="m", input_len=1, output_len=2, concurrency=3, prompts=4)
    assert parse(shlex.split(line)) == CheckOptions(file=Path("f"), expected=expected)
