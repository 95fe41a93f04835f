"""The plan is a pure function; its hash names what is measured and nothing else."""

from __future__ import annotations

import functools
import json

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
def planned(name: str, *, pin: str = "0", kit_version: str = "0", **choice: object) -> Plan:
    suite = read_suite(name, recipes_folder())
    pins = {recipe.image: pin * 64 for recipe in suite.recipes.values()}
    return make_plan(suite, Choice(**choice), pins=pins, kit_version=kit_version)  # type: ignore[arg-type]


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
    kit.suite["estimates"] = {**kit.suite["estimates"], "output_tok_s": 7, "source": "else"}  # type: ignore[dict-item]
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
    first, second = plan.sessions
    assert [cell.requests for cell in first.cells] == [cell.requests for cell in second.cells]
    assert first.warmups == second.warmups


def test_one_warmup_for_each_shape() -> None:
    names = [load.name for load in smoke().sessions[0].warmups]
    assert names == [f"warmup-{x}" for x in ("128-1k", "1k-1k", "8k-1k", "2k-128", "8k-1", "32k-1")]


@pytest.mark.parametrize(
    ("only", "cells"), [(("vllm",), 7), (("vllm/1k-1k-c2",), 1), (("vllm", "vllm-offline"), 14)]
)
def test_filters(only: tuple[str, ...], cells: int) -> None:
    assert len(smoke(only=only).cells) == cells


def test_filter_that_selects_nothing() -> None:
    with pytest.raises(UsageError, match="no such cells, did you mean 'vllm/1k-1k-c"):
        smoke(only=("vllm/1k-1k-c3",))


B300 = "deepseek-v41-flash-8xb300"


def test_published_suite_starts_each_size_of_deepinfer_by_itself() -> None:
    sessions = [each for each in planned(B300).sessions if each.recipe == "deepinfer"]
    assert [
        ([cell.workload for cell in each.cells], each.args.get("max_model_len"))
        for each in sessions
    ] == [
        (["1k-1k-c2048", "1k-1k-c4096"], None),
        (["8k-1k-c2048"], 9472),
        (["32k-1-c512"], 33024),
    ]


def test_lengths_fit_what_every_engine_is_given() -> None:
    plan = planned(B300, only=tuple(s.recipe for s in planned(B300).sessions))
    for session in plan.sessions:
        limit = session.args.get("--max-model-len") or session.args.get("max_model_len") or 4096
        for cell in session.cells:
            assert cell.requests.input_len + cell.requests.output_len <= int(str(limit)), cell.id


def test_variants_run_only_when_they_are_named() -> None:
    default = {session.recipe for session in planned(B300).sessions}
    assert default == {"vllm", "vllm-graphs-1536", "deepinfer", "deepinfer-step"}
    (named,) = planned(B300, only=("vllm-no-spec",)).sessions
    assert "--speculative-config" not in named.args
    assert "--speculative-config" not in named.why


def test_loads_scale_the_number_of_prompts() -> None:
    published, steady = planned(B300), planned(B300, load="steady")
    assert published.cells[0].requests.prompts == 2048
    assert steady.cells[0].requests.prompts == 5 * 2048
    assert steady.hash() != published.hash()
    assert [load.prompts for load in steady.sessions[0].warmups[:1]] == [2048]
    with pytest.raises(UsageError, match="no such load, did you mean 'steady'"):
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
