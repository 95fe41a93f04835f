"""The driver and the double, checked against what a really built DeepInfer image reported."""

from __future__ import annotations

import ast
import json
from typing import Any

import pytest

from harness.runtime.images import CONTRACT, Images, images_folder
from harness.suite.read import read_suite, recipes_folder
from tests.contract.calls import ACCESSORS, CALLS, ENGRAM, FIELDS
from tests.contract.source import REQUIRED, Source, parameters
from tests.ranks.launched import DOUBLES

LOCKED = Images(images_folder())
SAID: dict[str, Any] = json.loads((LOCKED.folder("deepinfer") / CONTRACT).read_text())


def signature(text: str) -> dict[str, str]:
    """Read a signature as `inspect` prints it."""
    (function,) = ast.parse(f"def f{text}: pass").body
    assert isinstance(function, ast.FunctionDef)
    return parameters(function)


def test_it_is_of_the_locked_sources() -> None:
    locked = {source.name: source.version for source in LOCKED.image("deepinfer").sources}
    assert {name: SAID["versions"][name] for name in locked} == locked
    lock = (LOCKED.folder("deepinfer") / "requirements.lock").read_text()
    for name in ("torch", "nvidia-nccl-cu13", "tokenspeed-deepselect", "tilelang", "transformers"):
        assert f"{name}=={SAID['versions'][name]} " in lock


@pytest.mark.parametrize("where", CALLS, ids="/".join)
def test_every_keyword_that_is_passed_is_in_the_image(where: tuple[str, str, str]) -> None:
    _, cls, method = where
    known = signature(SAID[cls][method])
    assert [name for name in CALLS[where] if name not in known] == []
    lacking = [name for name, default in known.items() if default == REQUIRED and name != "kwargs"]
    assert set(lacking) <= set(CALLS[where])


@pytest.mark.parametrize("where", CALLS, ids="/".join)
def test_the_double_has_the_images_signature(where: tuple[str, str, str]) -> None:
    file, cls, method = where
    double = parameters(Source(DOUBLES / "deepinfer" / file).method(cls, method))
    assert double == signature(SAID[cls][method])


def test_outputs_and_scheduler() -> None:
    assert set(ACCESSORS) <= set(SAID["RequestOutput"]["methods"])
    assert set(FIELDS) <= set(SAID["RequestOutput"]["fields"])
    assert "decode_step" in SAID["Scheduler"]["fields"]
    assert "get_num_preempted_seqs" in SAID["Scheduler"]["methods"]
    for method in ("step", "flush_inflight_reqs", "has_unfinished_requests", "add_request"):
        assert method in SAID["LLMEngine"]
    assert "close" in SAID["LLM"]


def test_recipes_set_what_the_image_takes() -> None:
    recipes = read_suite("deepseek-v41-flash-8xb300", recipes_folder()).recipes
    for name, recipe in recipes.items():
        if recipe.engine == "deepinfer":
            sized = {key for sizing in recipe.sizing for key in sizing.args}
            assert {*recipe.args, *sized} <= set(SAID["EngineArgs"]), name
            assert set(recipe.env) <= set(SAID["environment"]), name


def test_probe_calls_the_images_engram_buffer() -> None:
    assert set(ENGRAM) <= set(signature(SAID["EngramBuffer"]["__init__"]))
    for method in (
        "get_storage_size_hint",
        "get_theoretical_config",
        "set_config",
        "write",
        "fetch",
    ):
        assert method in SAID["EngramBuffer"]
