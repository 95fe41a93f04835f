"""Adding an engine takes a file: two are added here, and a metric, without touching harness/."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml as pyyaml

from harness.engines.registry import ENGINES, added
from harness.errors import UsageError
from harness.metrics import METRICS
from harness.results.run_directory import RunDirectory
from harness.runner.planned_run import PlannedRun
from harness.runner.preparation_steps import copy_code
from harness.runtime.environment import Environment
from harness.suite.read import read_suite
from tests.added.toys import LONGEST, ToyInside, ToyServer
from tests.conftest import IMAGE, Kit
from tests.ranks.test_run import double_runtime

SERVER = {
    "schema_version": 1,
    "title": "A toy server",
    "engine": "toy-server",
    "image": "toys",
    "args": {"--quick": True},
    "why": {"--quick": "it is a toy"},
}
INSIDE = {
    "schema_version": 1,
    "title": "A toy from inside",
    "engine": "toy-inside",
    "image": IMAGE,
    "ranks": 2,
    "args": {"greeting": "hello"},
    "why": {"ranks": "two are more than one", "greeting": "it is polite"},
}


@pytest.fixture
def toys(kit: Kit) -> Iterator[Kit]:
    """The kit with somebody else's two engines and metric, and a suite that uses them."""
    kit.suite["client_image"] = IMAGE
    kit.suite["sessions"] = [
        {"recipe": "served", "workloads": ["128-8-c2"]},
        {"recipe": "inside", "workloads": ["128-8-c2"]},
    ]
    kit.suite["tables"] = [
        {
            "id": "toys",
            "title": "Toys",
            "columns": [
                {"title": "In → Out", "show": "shape"},
                {"title": "Output tok/s", "recipe": "served", "metric": "output_throughput"},
                {"title": "Longest", "recipe": "inside", "metric": "longest_ttft_ms"},
                {"title": "Longest, served", "recipe": "served", "metric": "longest_ttft_ms"},
            ],
            "rows": [{"workload": "128-8-c2"}],
        }
    ]
    kit.runtimes = {"local": double_runtime}
    kit.add_image("toys", {"toy-serve": Path(__file__).with_name("toy_serve.py").read_text()})
    with added(ToyServer(), ToyInside()), METRICS.added(LONGEST):
        recipes = kit.folder / "recipes" / "test"
        recipes.mkdir(parents=True)
        (recipes / "served.yaml").write_text(pyyaml.safe_dump(SERVER, sort_keys=False))
        (recipes / "inside.yaml").write_text(pyyaml.safe_dump(INSIDE, sort_keys=False))
        yield kit


def test_a_suite_of_added_engines_is_measured_and_reported(toys: Kit) -> None:
    outcome = toys.run()
    assert outcome.results.complete, [each.reasons for each in outcome.results.cells]
    report = outcome.directory.report.read_text()
    row = next(line for line in report.splitlines() if line.startswith("| 128 → 8 |"))
    assert "| [1.0 ms](cells/inside/128-8-c2/r1/result.json) |" in row
    assert "the client does not say" in report
    assert "- served is a toy." in report
    assert "every engine uses only the likeliest token" in report
    assert "| [served 1](sessions/served/1/) | Toy |" in report
    assert "not checked: no endpoint for it" in report
    assert "| Toy hello |" in report
    assert "toy: 7 blocks of cache" in report
    served = outcome.results.of("served", "128-8-c2")[0]
    assert served.record is not None
    assert str(Environment(IMAGE, toys.site.images, toys.site.cache).programs) in (
        served.record.command
    ), "the client does not come from the suite's client image"


def test_its_own_counters_are_held_against_the_client(toys: Kit) -> None:
    toys.fault(bench={"128-8-c2": "others-use-it"})
    outcome = toys.run(only=("served",))
    (found,) = outcome.results.cells
    assert found.status == "invalid"
    assert "(toy_read)" in found.reasons[0]


def test_the_code_of_its_own_is_copied_and_printed(toys: Kit) -> None:
    plan = toys.plan()
    run = PlannedRun(plan=plan, directory=RunDirectory(Path("/run")), model_folder=Path("/model"))
    step = copy_code(run)
    (backend,) = ToyInside.modules
    assert (backend, step.folder) in list(step.copies)


def test_without_them_the_recipe_is_refused(toys: Kit) -> None:
    toys.write_suite()
    path = toys.folder / "recipes" / "test" / "inside.yaml"
    path.write_text(path.read_text().replace("toy-inside", "toy-insid"))
    with pytest.raises(UsageError, match="did you mean 'toy-inside'") as caught:
        read_suite("test", toys.folder / "recipes")
    assert "inside.yaml:3: engine" in caught.value.what


def test_nothing_stays_behind() -> None:
    assert not {"toy-server", "toy-inside"} & set(ENGINES.names)
    assert LONGEST.name not in METRICS.names
