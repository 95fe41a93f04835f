"""What is read from a run directory, and which broken files stop the reading."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.results.collect import collect
from harness.results.verdict import judge
from tests.report.golden import incomplete, published_suite


def test_all_that_a_report_shows_is_read_at_once(tmp_path: Path) -> None:
    results = collect(published_suite(tmp_path))
    assert results.reference is not None
    assert len(judge(results)) == len(results.reference.published.claims)
    assert [(each.recipe, each.number) for each in results.sessions] == [
        ("deepinfer", 1), ("deepinfer", 2), ("deepinfer", 3), ("deepinfer-step", 1),
        ("vllm", 1), ("vllm-graphs-1536", 1),
    ]  # fmt: skip
    assert all(results.manifest(each) for each in results.plan.request_sets)
    assert results.host_files == ("host/host.json",)


def test_a_run_that_is_compared_with_nothing_has_no_judgements(tmp_path: Path) -> None:
    results = collect(incomplete(tmp_path))
    assert results.reference is None
    assert judge(results) == []


@pytest.mark.parametrize(
    "file",
    [
        "run.json",
        "published.json",
        "sessions/vllm/1/session.json",
        "prompts/32k-1-c512/2069625678.manifest.json",
    ],
)
def test_a_broken_record_of_the_run_is_refused(file: str, tmp_path: Path) -> None:
    directory = published_suite(tmp_path)
    path = directory.path / file
    path.write_text('{"torn": ')
    with pytest.raises(UsageError, match=f"cannot read {path}"):
        collect(directory)


def test_a_broken_file_of_a_cell_costs_that_cell_alone(tmp_path: Path) -> None:
    directory = incomplete(tmp_path)
    (directory.path / "cells/offline/128-8-c2/r1/cell.json").write_text("")
    (directory.path / "cells/offline/128-8-c2/r2/result.json").write_text("")
    found = {each.cell.id: each.status for each in collect(directory).cells}
    assert found["offline/128-8-c2/r1"] == "failed"
    assert found["offline/128-8-c2/r2"] == "invalid"
    assert found["server/128-8-c2/r1"] == "measured"
