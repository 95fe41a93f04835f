"""The plan is a pure function; its hash names what is measured and nothing else."""

from __future__ import annotations

import functools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import UsageError
from harness.suite.plan import Plan, plan_from_json, plan_to_json
from harness.suite.planner import Choice, make_plan, seed_of
from harness.suite.read import read_suite, recipes_folder
from tests.conftest import Kit

NAMES = st.text(st.characters(codec="ascii", categories=["Ll", "Nd"]), min_size=1)


def smoke(**options: object) -> Plan:
    return planned("smoke", **options)


@functools.cache
def planned(name: str, *, pin: str = "0", kit_version: str = "0", **choice: Any) -> Plan:
    suite = read_suite(name, recipes_folder())
    pins = {recipe.image: pin * 64 for recipe in suite.recipes.values()}
    return make_plan(suite, Choice(**choice), pins=pins, kit_version=kit_version)


def test_plan_survives_the_run_directory() -> None:
    plan = smoke(repeats=2, only=("vllm",))
    again = plan_from_json(json.loads(json.dumps(plan_to_json(plan))))
    assert again == plan
    assert again.hash() == plan.hash()


def test_hash_covers_what_is_measured() -> None:
    base = smoke().hash()
    others = [
        smoke(repeats=2),
        smoke(only=("vllm",)),
        smoke(pin="1"),
        smoke(kit_version="1"),
        smoke(runtime="docker"),
    ]
    assert len({base, *(plan.hash() for plan in others)}) == 6


def test_hash_leaves_estimates_out(kit: Kit) -> None:
    first = kit.plan()
    kit.suite["estimates"] = {**kit.suite["estimates"], "output_tok_s": 7, "source": "else"}
    second = kit.plan()
    assert first.expected_s != second.expected_s
    assert first.hash() == second.hash()


@given(name=NAMES, phase=st.sampled_from(["timed", "warmup"]), repeat=st.integers(1, 100))
def test_seed_fits_every_generator(name: str, phase: str, repeat: int) -> None:
    assert 0 <= seed_of(name, phase, repeat) < 2**31


def test_timed_and_warmup_prompts_differ_and_engines_share_them() -> None:
    plan = smoke()
    timed = {cell.requests.seed for cell in plan.cells}
    warmups = {load.seed for session in plan.sessions for load in session.warmups}
    assert not timed & warmups
    served = [{cell.workload for cell in session.cells} for session in plan.sessions]
    assert set.intersection(*served)
    timed_sets = {(cell.workload, cell.repeat): cell.requests for cell in plan.cells}
    assert all(cell.requests == timed_sets[cell.workload, cell.repeat] for cell in plan.cells)
    warmup_sets = {load.name: load for session in plan.sessions for load in session.warmups}
    assert all(load == warmup_sets[load.name] for s in plan.sessions for load in s.warmups)


def test_one_warmup_for_each_shape(kit: Kit) -> None:
    workload = {"input_len": 128, "output_len": 8, "concurrency": 4}
    kit.suite["workloads"] = {**kit.suite["workloads"], "128-8-c4": workload}
    kit.suite["sessions"][0]["workloads"].append("128-8-c4")
    first = kit.plan().sessions[0]
    assert [cell.workload for cell in first.cells] == ["128-8-c2", "1k-1-c1", "128-8-c4"]
    assert [load.name for load in first.warmups] == ["warmup-128-8", "warmup-1k-1"]


@pytest.mark.parametrize(
    ("only", "cells"),
    [
        (("server",), ["server/128-8-c2/r1", "server/1k-1-c1/r1"]),
        (("server/1k-1-c1",), ["server/1k-1-c1/r1"]),
        (("server/1k-1-c1", "offline/1k-1-c1"), ["server/1k-1-c1/r1", "offline/1k-1-c1/r1"]),
    ],
)
def test_filters(kit: Kit, only: tuple[str, ...], cells: list[str]) -> None:
    assert [cell.id for cell in kit.plan(only=only).cells] == cells


def test_filter_that_selects_nothing() -> None:
    with pytest.raises(UsageError, match="no such cells, did you mean 'vllm/1k-1k-c"):
        smoke(only=("vllm/1k-1k-c3",))


B300 = "deepseek-v41-flash-8xb300"


def test_published_suite_starts_each_size_of_deepinfer_by_itself() -> None:
    recipe = read_suite(B300, recipes_folder()).recipes["deepinfer"]
    sessions = [each for each in planned(B300).sessions if each.recipe == "deepinfer"]
    sizes: list[int] = []
    for session in sessions:
        workloads = {cell.workload for cell in session.cells}
        sizing = [each for each in recipe.sizing if workloads & set(each.workloads)]
        assert all(workloads <= set(each.workloads) for each in sizing)
        sized = {name: value for each in sizing for name, value in each.args.items()}
        assert session.args == {**recipe.args, **sized}
        sizes += [recipe.sizing.index(each) for each in sizing]
    assert len(sizes) > 1
    assert sizes == list(range(len(recipe.sizing)))


def test_lengths_fit_what_every_engine_is_given() -> None:
    plan = planned(B300, only=tuple(s.recipe for s in planned(B300).sessions))
    for session in plan.sessions:
        limit = session.args.get("--max-model-len") or session.args.get("max_model_len") or 4096
        for cell in session.cells:
            assert cell.requests.input_len + cell.requests.output_len <= int(str(limit)), cell.id


def test_variants_run_only_when_they_are_named() -> None:
    sessions = read_suite(B300, recipes_folder()).file.sessions
    opt_in = {session.recipe for session in sessions if session.opt_in}
    default = {session.recipe for session in planned(B300).sessions}
    assert default == {session.recipe for session in sessions} - opt_in
    assert "vllm-no-spec" in opt_in
    (named,) = planned(B300, only=("vllm-no-spec",)).sessions
    assert "--speculative-config" not in named.args
    assert "--speculative-config" not in named.why


def test_loads_scale_the_number_of_prompts() -> None:
    loads = read_suite(B300, recipes_folder()).file.loads
    published, steady = planned(B300), planned(B300, load="steady")
    assert published.load != "steady"
    for plan in (published, steady):
        for cell in plan.cells:
            workload = plan.workloads[cell.workload]
            assert cell.requests.prompts == loads[plan.load].waves * workload.wave
    assert steady.hash() != published.hash()
    assert [each.warmups for each in steady.sessions] == [s.warmups for s in published.sessions]
    with pytest.raises(UsageError, match="no such load level, did you mean 'steady'"):
        planned(B300, load="stedy")


def test_time_comes_from_the_published_rates() -> None:
    cells = {cell.id: cell for cell in planned(B300).cells}
    decode = cells["deepinfer/8k-1k-c2048/r1"]
    assert decode.expected_s == pytest.approx(2048 * 1024 / 6933)
    prefill = cells["deepinfer/32k-1-c512/r1"]
    assert prefill.expected_s == pytest.approx(512 * 32768 / 64847)
    # A variant without a rate of its own is expected to run like its base.
    step = cells["deepinfer-step/1k-1k-c2048/r1"]
    assert step.expected_s == cells["deepinfer/1k-1k-c2048/r1"].expected_s
