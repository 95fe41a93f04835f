"""Whole reports, byte for byte: no change goes unnoticed."""

from __future__ import annotations

import collections
import shutil
from pathlib import Path

import pytest

from harness.report import markdown
from harness.report.assemble import assemble
from harness.report.render import write_report
from harness.results.collect import collect
from tests.report.golden import FOLDER, NOTICE, RUNS, incomplete, published_suite


@pytest.mark.parametrize("name", RUNS)
def test_report_is_the_golden_one(name: str, tmp_path: Path) -> None:
    directory = RUNS[name](tmp_path)
    write_report(directory)
    golden = (FOLDER / name).read_text(encoding="utf-8")
    assert directory.report.read_text(encoding="utf-8") == golden, (
        "meant? next: python -m tests.report.golden"
    )


@pytest.mark.parametrize("name", RUNS)
def test_report_needs_no_file_once_its_run_is_read(name: str, tmp_path: Path) -> None:
    directory = RUNS[name](tmp_path / "run")
    results = collect(directory)
    shutil.rmtree(directory.path)
    golden = (FOLDER / name).read_text(encoding="utf-8")
    assert markdown.document(assemble(results)) + "\n" == golden


def test_every_golden_report_says_at_its_top_that_it_is_synthetic() -> None:
    found = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.iterdir()}
    assert found.keys() == RUNS.keys()
    for name, text in found.items():
        title, _, notice = text.split("\n")[:3]
        assert title.startswith("# Synthetic: "), name
        assert notice == f"> **{NOTICE}**", name


def test_synthetic_runs_are_judged_like_any_other(tmp_path: Path) -> None:
    whole = write_report(published_suite(tmp_path / "whole"))
    assert whole.complete, [each.reasons for each in whole.cells]
    part = write_report(incomplete(tmp_path / "part"))
    counts = collections.Counter(each.status for each in part.cells)
    assert counts == {"measured": 3, "invalid": 1, "failed": 1, "missing": 3}
