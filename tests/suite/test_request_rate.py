"""Workloads whose requests arrive at a rate, from the suite file to the report's table."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from harness.engines.client import ClientModel, bench_argv
from harness.errors import UsageError
from harness.suite.read import read_suite
from tests.conftest import Kit

RATE = {"input_len": 128, "output_len": 8, "request_rate": 2.5, "prompts": 6}


def with_rate(kit: Kit, workload: Mapping[str, object], *, recipe: int = 0) -> Kit:
    """Plan a workload with a rate for one recipe: 0 is the server, 1 the in-process engine."""
    kit.suite["workloads"]["128-8-r"] = dict(workload)
    kit.suite["sessions"][recipe]["workloads"].append("128-8-r")
    kit.suite["tables"][0]["rows"].append({"workload": "128-8-r", "metric": "p99_ttft_ms"})
    return kit


def test_requests_arrive_and_nothing_holds_them_back(kit: Kit) -> None:
    plan = with_rate(kit, RATE).plan(only=("server/128-8-r",))
    requests = plan.cells[0].requests
    assert (requests.concurrency, requests.request_rate, requests.prompts) == (None, 2.5, 6)
    model = ClientModel(name="m", folder="/m")
    argv = bench_argv(model, requests, base_url="u", result_dir="d", result_name="n")
    assert argv[argv.index("--request-rate") + 1] == "2.5"
    assert "--max-concurrency" not in argv


def test_they_take_as_long_as_they_take_to_arrive(kit: Kit) -> None:
    plan = with_rate(kit, RATE | {"prompts": 3000}).plan(only=("server/128-8-r",))
    assert plan.cells[0].expected_s >= 3000 / 2.5


def test_a_cell_is_measured_and_its_table_says_the_rate(kit: Kit) -> None:
    outcome = with_rate(kit, RATE).run()
    assert outcome.results.complete
    assert "| 128 → 8 | 2.5/s |" in outcome.directory.report.read_text()


def test_a_client_that_sent_all_at_once_did_not_measure_it(kit: Kit) -> None:
    kit.fault(bench={"128-8-r": "all-at-once"})
    outcome = with_rate(kit, RATE).run()
    found = next(each for each in outcome.results.cells if each.cell.workload == "128-8-r")
    assert found.status == "invalid"
    assert "request rate inf, expected 2.5" in found.reasons[0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"concurrency": 4}, "exactly one of: concurrency, request_rate"),
        ({"request_rate": None}, "exactly one of: concurrency, request_rate"),
        ({"prompts": None}, "prompts, the number of requests, is given"),
        ({"request_rate": None, "concurrency": 4}, "prompts, the number of requests, is given"),
        ({"request_rate": 0}, "greater than 0"),
        ({"request_rate": float("inf")}, "valid number"),
        ({"request_rate": "inf"}, "valid number"),
    ],
)
def test_what_is_no_rate(kit: Kit, change: dict[str, object], message: str) -> None:
    given = {name: value for name, value in (RATE | change).items() if value is not None}
    with pytest.raises(UsageError, match=message):
        with_rate(kit, given).plan()


def test_an_in_process_engine_has_no_arrivals(kit: Kit) -> None:
    with_rate(kit, RATE, recipe=1).write_suite()
    with pytest.raises(UsageError, match=r"suite\.yaml:\d+: workload '128-8-r' has a request rate"):
        read_suite("test", kit.folder / "recipes")
