"""A whole run with DeepInfer's double: the real launcher and ranks, the real report."""

from __future__ import annotations

import dataclasses
import os
import re
import sys
from pathlib import Path

import pytest
import yaml as pyyaml

from harness.clock import Clock
from harness.console import Progress
from harness.errors import EngineError
from harness.process import Owner, Process
from harness.results.collect import collect
from harness.results.run_directory import RunDirectory
from harness.runner.site import Site
from harness.runtime.base import Command
from harness.runtime.local import LocalRuntime
from tests.conftest import IMAGE, Kit
from tests.ranks.launched import DOUBLES

RECIPE = {
    "schema_version": 1,
    "title": "The double, generate",
    "engine": "deepinfer",
    "image": IMAGE,
    "drive": "generate",
    "args": {"data_parallel_size": 2, "expert_parallel_size": 2, "max_num_seqs": 1},
    "env": {"DEEPINFER_USE_MULTIMODAL_POOL": "0"},
    "why": {
        "drive": "a test",
        "data_parallel_size": "two ranks",
        "expert_parallel_size": "two ranks",
        "max_num_seqs": "so small that requests queue",
        "DEEPINFER_USE_MULTIMODAL_POOL": "departs from the default: no workload has images",
    },
}
STEPPED = {
    "schema_version": 1,
    "extends": "called",
    "title": "The double, step",
    "drive": "step",
    "why": {"drive": "to compare"},
}


@dataclasses.dataclass(frozen=True)
class DoubleRuntime(LocalRuntime):
    """Runs the real launcher, with the double on its path; all else is the fake engine's."""

    def start(self, command: Command, *, log: Path, owner: Owner) -> Process:
        if "harness.inside.launcher" not in command.argv:
            return super().start(command, log=log, owner=owner)
        path = os.pathsep.join([command.env["PYTHONPATH"], str(DOUBLES)])
        env = {**command.env, "PATH": os.environ["PATH"], "PYTHONPATH": path}
        for name in ("DOUBLE_FAULT",):
            env |= {name: os.environ[name]} if name in os.environ else {}
        return owner.spawn((sys.executable, *command.argv[1:]), env=env, log=log)


def double_runtime(site: Site, *, owner: Owner, clock: Clock, progress: Progress) -> DoubleRuntime:
    return DoubleRuntime(site.images, site.cache, owner, clock, progress)


@pytest.fixture
def double(kit: Kit) -> Kit:
    kit.runtimes = {"local": double_runtime}
    kit.suite["workloads"]["128-8-c4"] = {
        "input_len": 128, "output_len": 8, "concurrency": 4
    }  # fmt: skip
    kit.suite["sessions"] = [
        {"recipe": "server", "workloads": ["128-8-c4"]},
        {"recipe": "called", "workloads": ["128-8-c4"]},
        {"recipe": "stepped", "workloads": ["128-8-c4"]},
    ]
    kit.suite["tables"] = [
        {
            "id": "decode",
            "title": "Decode",
            "columns": [
                {"title": "In → Out", "show": "shape"},
                {"title": "Output tok/s", "recipe": "called", "metric": "output_throughput"},
                {"title": "TPOT", "recipe": "called", "metric": "mean_tpot_ms"},
            ],
            "rows": [{"workload": "128-8-c4"}],
        }
    ]
    recipes = kit.folder / "recipes" / "test"
    recipes.mkdir(parents=True)
    (recipes / "called.yaml").write_text(pyyaml.safe_dump(RECIPE, sort_keys=False))
    (recipes / "stepped.yaml").write_text(pyyaml.safe_dump(STEPPED, sort_keys=False))
    return kit


def test_run_is_measured_and_reported(double: Kit) -> None:
    outcome = double.run()
    assert outcome.results.complete, [each.reasons for each in outcome.results.cells]
    report = outcome.directory.report.read_text()
    assert "## Two drive modes" in report
    assert "## Ranks of in-process engines" in report
    assert "called/128-8-c4: of 4 requests, 2 run concurrently" in report
    assert "DeepInfer `DEEPINFER_USE_MULTIMODAL_POOL` departs from the default" in report
    assert "TTFT and TPOT are not measured, and the wave" in report
    assert "| `drive generate` | a test |" in report
    assert "| DeepInfer 0.1.0 |" in report
    called = outcome.results.of("called", "128-8-c4")[0].measurement
    stepped = outcome.results.of("stepped", "128-8-c4")[0].measurement
    assert called is not None
    assert stepped is not None
    assert called.metric("mean_ttft_ms") is None
    assert stepped.metric("mean_ttft_ms") is not None
    # Both wait for a vote between the two requests of a rank; generate also before the first.
    assert (called.ranks[0].engine_steps, stepped.ranks[0].engine_steps) == (142, 75)
    row = next(line for line in report.splitlines() if line.startswith("| called, 128-8-c4 |"))
    assert row.count("|") == 8


def test_same_prompts_or_no_number(double: Kit) -> None:
    outcome = double.run()
    path = next(outcome.directory.path.glob("prompts/128-8-c4/*.manifest.json"))
    path.write_text(path.read_text().replace('"sha256": "', '"sha256": "0'))
    results = collect(RunDirectory(outcome.directory.path))
    for recipe in ("called", "stepped"):
        (cell,) = results.of(recipe, "128-8-c4")
        assert cell.status == "invalid"
        assert "the engine did not read the prompts of the manifest" in cell.reasons[0]


def test_special_tokens_in_prompts_give_no_number(double: Kit) -> None:
    double.fault(prompts="reserved")
    (cell,) = double.run().results.of("stepped", "128-8-c4")
    assert cell.status == "invalid"
    assert "1 prompts contain special or image tokens" in cell.reasons[0]


def test_rank_that_dies_fails_the_cell_and_says_so(
    double: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Later than the steps of its warm-up.
    monkeypatch.setenv("DOUBLE_FAULT", '{"rank": 1, "kind": "dies", "step": 150}')
    with pytest.raises(EngineError) as caught:
        double.run()
    # The first line says which rank, when and how. A neighbour can notice it first.
    line = caught.value.what.splitlines()[0]
    assert re.match(r"the engine stopped after '[a-z-]+' \(exit 1\): rank \d (ended|failed)", line)
    results_folder = double.runs()[-1]
    results = collect(RunDirectory(results_folder))
    assert [each.status for each in results.of("server", "128-8-c4")] == ["measured"]
    (cell,) = results.of("called", "128-8-c4")
    assert cell.record is not None
    assert cell.record.cause == "engine"
    rank = re.match(r"the engine stopped .*: rank (\d) ", cell.reasons[0])
    assert rank is not None
    assert cell.record.log == f"sessions/called/2/rank-{rank[1]}.log"
    assert (results_folder / cell.record.log).exists()
