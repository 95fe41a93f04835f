"""A run can be killed at any moment: for every step of every write, crash there and run again."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.files import before_write
from harness.results.run_directory import RunDirectory
from tests.conftest import Kit
from tests.in_process import FixedClock, InProcessRuntime

SHARDS = 8


class Crash(BaseException):
    """Stands in for kill -9: from then on, nothing is written."""


class Dying:
    """Lets ``survived`` steps of writes pass, then dies and stays dead."""

    def __init__(self, survived: int) -> None:
        self.left = survived
        self.steps: list[tuple[str, Path]] = []

    def __call__(self, step: str, path: Path) -> None:
        self.steps.append((step, path))
        if self.left == 0:
            raise Crash
        self.left -= 1


@pytest.fixture
def quick(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> Kit:
    kit.runtimes = {"local": InProcessRuntime()}
    kit.clock = FixedClock()
    plan = kit.plan()
    monkeypatch.setattr(kit, "plan", lambda: plan)
    # A crash of the process is tested here, not one of the disk.
    monkeypatch.setattr("os.fsync", lambda descriptor: None)
    monkeypatch.setattr("harness.runner.run.kit_commit", lambda: "0" * 12)
    return kit


def comparable(report: str) -> str:
    """Leave out which engine start served a cell, and how the run was called."""
    without_sessions = re.sub(r"## Engine sessions.*?(?=\n## )", "", report, flags=re.DOTALL)
    return re.sub(r"test-20261130T000000Z-0000test(-\d+)?", "RUN", without_sessions)


def finished(run: Path, kit: Kit) -> dict[str, bytes]:
    """Return every file of every finished cell."""
    directory = RunDirectory(run)
    return {
        str(path): path.read_bytes()
        for cell in kit.plan().cells
        if directory.finished(cell)
        for path in directory.cell(cell).iterdir()
        # What a write left behind at the moment of the crash belongs to no one.
        if not path.name.startswith(".")
    }


def crash_after(kit: Kit, steps: int) -> list[tuple[str, Path]]:
    dying = Dying(steps)
    with before_write(dying), pytest.raises(Crash):
        kit.run()
    return dying.steps


def steps_of_a_whole_run(kit: Kit) -> tuple[list[tuple[str, Path]], str]:
    counting = Dying(-1)
    with before_write(counting):
        outcome = kit.run()
    return counting.steps, outcome.directory.report.read_text()


def clear(kit: Kit) -> None:

    shutil.rmtree(kit.site.reports, ignore_errors=True)


@pytest.mark.parametrize("shard", range(SHARDS))
def test_every_crash_keeps_what_was_finished_and_measures_the_rest(quick: Kit, shard: int) -> None:
    steps, whole = steps_of_a_whole_run(quick)
    assert len(steps) > 100
    planned = {cell.id for cell in quick.plan().cells}
    for survived in range(shard, len(steps), SHARDS):
        clear(quick)
        where = crash_after(quick, survived)[-1]
        runs = quick.runs()
        kept = finished(runs[-1], quick) if runs else {}
        done = {cell.id for cell in quick.plan().cells
                if runs and RunDirectory(runs[-1]).finished(cell)}  # fmt: skip
        measured = set(measured_cells(quick))
        assert measured == planned - done, where
        assert {path: Path(path).read_bytes() for path in kept} == kept, where
        report = (quick.runs()[-1] / "report.md").read_text()
        assert comparable(report) == comparable(whole), where


def measured_cells(kit: Kit) -> Iterator[str]:
    """Run, and yield the cells that were measured in this very run."""
    counting = Dying(-1)
    with before_write(counting):
        assert kit.run().results.complete
    for step, path in counting.steps:
        if step == "rename" and path.name == "cell.json":
            yield "/".join(path.parts[-4:-1])


@settings(max_examples=20)
@given(crashes=st.lists(st.integers(0, 120), min_size=2, max_size=4))
def test_several_crashes_in_a_row(
    crashes: list[int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    kit = Kit(tmp_path_factory.mktemp("crashes"))
    kit.runtimes, kit.clock = {"local": InProcessRuntime()}, FixedClock()
    kit.install_fake()
    for survived in crashes:
        with before_write(Dying(survived)):
            try:
                kit.run()
            except Crash:
                continue
    outcome = kit.run()
    assert outcome.results.complete
    (newest, *_) = sorted(kit.runs(), key=lambda run: (run / "report.md").exists(), reverse=True)
    assert outcome.directory.path == newest
