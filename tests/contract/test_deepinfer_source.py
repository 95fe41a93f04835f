"""What the driver relies on exists in DeepInfer's own source, and means what it relies on.

`nox -s contract` fetches the sdists by hash and names their folder in ``DEEPINFER_SOURCES``.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from harness.engines import gin_probe
from harness.engines.deepinfer import DEPARTS
from harness.inside import ports
from harness.suite.read import read_suite, recipes_folder
from tests.contract.calls import ACCESSORS, CALLS, ENGRAM, FIELDS
from tests.contract.source import REQUIRED, Source, parameters
from tests.ranks.launched import DOUBLES

pytestmark = pytest.mark.contract

SUITE = "deepseek-v41-flash-8xb300"


@pytest.fixture(scope="session")
def package() -> Path:
    return Path(os.environ["DEEPINFER_SOURCES"]) / "deepinfer-0.1.0"


def source(package: Path, name: str) -> Source:
    return Source(package / "deepinfer" / name)


@pytest.mark.parametrize("where", CALLS, ids="/".join)
def test_every_keyword_that_is_passed_exists(package: Path, where: tuple[str, str, str]) -> None:
    file, cls, method = where
    known = parameters(source(package, file).method(cls, method))
    assert [name for name in CALLS[where] if name not in known] == []


def test_nothing_required_is_left_out(package: Path) -> None:
    for (file, cls, method), passed in CALLS.items():
        known = parameters(source(package, file).method(cls, method))
        lacking = [name for name, default in known.items() if default == REQUIRED]
        assert set(lacking) <= set(passed), f"{cls}.{method} also wants {lacking}"


@pytest.mark.parametrize("name", ["generate", "close", "_add_request", "_run_engine"])
def test_llm_has(package: Path, name: str) -> None:
    source(package, "entrypoints/llm.py").method("LLM", name)


@pytest.mark.parametrize(
    "name", ["add_request", "has_unfinished_requests", "step", "flush_inflight_reqs", "close"]
)
def test_engine_has(package: Path, name: str) -> None:
    source(package, "engine/llm_engine.py").method("LLMEngine", name)


def test_engine_holds_what_is_read_from_it(package: Path) -> None:
    held = source(package, "engine/llm_engine.py").assigned("LLMEngine", "__init__")
    assert {"scheduler", "generate_step", "multi_modal_processor"} <= held
    text = source(package, "engine/llm_engine.py").text
    assert "self.cache_config" in text
    assert "self.generate_step += 1" in text
    assert "llm_engine" in source(package, "entrypoints/llm.py").assigned("LLM", "__init__")


@pytest.mark.parametrize(
    "name",
    [*ACCESSORS, *FIELDS],
)
def test_request_output_has(package: Path, name: str) -> None:
    assert name in source(package, "_C/engine.pyi").methods("RequestOutput")


@pytest.mark.parametrize("name", ["decode_step", "get_num_preempted_seqs"])
def test_scheduler_has(package: Path, name: str) -> None:
    stub = source(package, "_C/engine.pyi")
    assert name in stub.methods("Scheduler")
    assert "@decode_step.setter" in stub.text


def test_recipes_set_what_the_engine_takes(package: Path) -> None:
    fields = source(package, "engine/arg_utils.py").fields("EngineArgs")
    known = source(package, "environ.py").text
    for name, recipe in read_suite(SUITE, recipes_folder()).recipes.items():
        if recipe.engine == "deepinfer":
            settings = {*recipe.args, *(key for sizing in recipe.sizing for key in sizing.args)}
            assert settings <= set(fields), name
            for variable in recipe.env:
                assert re.search(rf"^    {variable} = EnvVar\.", known, re.MULTILINE), variable


DEFAULTS = {
    "DEEPINFER_USE_NEXTN_DECODE": "5",
    "DEEPINFER_CUDAGRAPH_BATCH_SIZE_INTERVAL": "8",
    "DEEPINFER_PREFILL_ATTEMPT_INTERVAL": "70",
    "DEEPINFER_PREFILL_ANY_ATTEMPT_INTERVAL": "100",
}


@pytest.mark.parametrize("name", DEFAULTS)
def test_environment_defaults(package: Path, name: str) -> None:
    text = source(package, "environ.py").text
    found = re.search(rf"^    {name} = EnvVar\.int\(default=([^)]*)\)", text, re.MULTILINE)
    assert found, f"{name} is gone"
    assert str(eval(found[1], {"__builtins__": {}})) == DEFAULTS[name]  # arithmetic only


def test_ranks_would_wait_four_hours_for_one_that_hangs(package: Path) -> None:
    text = source(package, "environ.py").text
    assert "DEEPINFER_GLOO_TIMEOUT = EnvVar(lambda v: timedelta(seconds=_float(v, 14400)))" in text


def test_recipes_that_call_something_a_default_are_right(package: Path) -> None:
    fields = source(package, "engine/arg_utils.py").fields("EngineArgs")
    recipe = read_suite(SUITE, recipes_folder()).recipes["deepinfer"]
    for name, value in {**recipe.args, **recipe.env}.items():
        default = fields.get(name) or DEFAULTS.get(name)
        if "the engine's default" in recipe.why[name]:
            assert default is not None, name
            assert float(str(value)) == float(default), name
        elif name not in ("data_parallel_size", "expert_parallel_size"):
            assert recipe.why[name].startswith(DEPARTS), f"{name} is no default: say so"
            assert default is None or float(str(value)) != float(default)


def test_generate_gives_every_request_a_dict_and_an_own_copy(package: Path) -> None:
    """Why `generate` loses steps, and why `step` passes None."""
    code = source(package, "entrypoints/llm.py")
    body = code.text[code.text.index("def _add_request") :]
    assert "multi_modal_data = dict(image_bytes=[], image_sizes=[])" in body
    assert "copy.deepcopy(sampling_params)" in body
    step = source(package, "engine/llm_engine.py").text
    scheduled = step.index("self.scheduler.schedule(")
    fetched = step.index("self.multi_modal_processor.fetch()")
    assert scheduled < fetched, "images are fetched before scheduling now: generate loses no steps"


def test_prefill_is_voted_for_at_multiples_of_decode_step(package: Path) -> None:
    text = (package / "csrc" / "engine" / "scheduler.hpp").read_text()
    assert "decode_step % prefill_attempt_interval == 0" in text
    assert "decode_step % prefill_any_attempt_interval == 0" in text
    bindings = (package / "csrc" / "engine" / "pybind_scheduler.cpp").read_text()
    assert '.def_readwrite("decode_step", &Scheduler::decode_step)' in bindings


def test_drafts_are_counted_with_one_more_on_a_steps_last_token(package: Path) -> None:
    text = (package / "csrc" / "engine" / "outputs.hpp").read_text()
    assert "draft_tok" in text
    assert "accept_tok" in text


def test_port_is_shifted_as_the_launcher_expects(package: Path) -> None:
    text = source(package, "utils.py").text
    assert f'os.getenv("MASTER_PORT", "23333")) - {ports.DEEPINFER_PORT_SHIFT}' in text


def test_gpu_is_named_by_a_plain_integer(package: Path) -> None:
    text = source(package, "engine/llm_engine.py").text
    assert 'list(map(int, os.environ["CUDA_VISIBLE_DEVICES"].split(",")))' in text


def test_finish_reason_of_a_full_length(package: Path) -> None:
    text = (package / "csrc" / "engine" / "sequence.hpp").read_text()
    assert 'return "length"' in text


def test_it_imports_without_torch_or_gpu(package: Path, tmp_path: Path) -> None:
    """The real `deepinfer`; a stand-in for torch has the one number `sampling_params` needs."""
    (tmp_path / "torch.py").write_text(
        "int32 = None\nclass iinfo:\n    max = 2**31 - 1\n    def __init__(self, _): pass\n"
    )
    code = (
        "import deepinfer\n"
        "assert deepinfer.__version__ == '0.1.0'\n"
        "assert deepinfer.envs.DEEPINFER_USE_NEXTN_DECODE == 5\n"
        "from deepinfer.sampling_params import SamplingParams\n"
        "made = SamplingParams(temperature=0.6, top_p=0.95, top_k=-1, ignore_eos=True,"
        " max_tokens=1024, seq_seed=7)\n"
        "assert (made.max_tokens, made.seq_seed, made.ignore_eos) == (1024, 7, True)\n"
    )
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": f"{package}{os.pathsep}{tmp_path}"}
    subprocess.run([sys.executable, "-c", code], env=env, check=True, cwd=tmp_path)


DOUBLED = [
    ("entrypoints/llm.py", "LLM", "__init__"),
    ("entrypoints/llm.py", "LLM", "generate"),
    ("engine/llm_engine.py", "LLMEngine", "add_request"),
    ("sampling_params.py", "SamplingParams", "__init__"),
]


@pytest.mark.parametrize("where", DOUBLED, ids="/".join)
def test_the_double_has_the_real_signature(package: Path, where: tuple[str, str, str]) -> None:
    file, cls, method = where
    real = parameters(source(package, file).method(cls, method))
    assert parameters(Source(DOUBLES / "deepinfer" / file).method(cls, method)) == real


def test_the_double_has_the_real_engine_arguments(package: Path) -> None:
    double = Source(DOUBLES / "deepinfer" / "engine" / "arg_utils.py").fields("EngineArgs")
    real = source(package, "engine/arg_utils.py").fields("EngineArgs")
    double["engine_type"] = real["engine_type"]
    assert double == real


def test_the_double_has_only_real_accessors(package: Path) -> None:
    real = source(package, "_C/engine.pyi").methods("RequestOutput")
    double = Source(DOUBLES / "deepinfer" / "_C" / "engine.py")
    assert double.methods("RequestOutput") <= real
    assert set(double.fields("RequestOutput")) <= real


def test_a_renamed_keyword_is_named(package: Path, tmp_path: Path) -> None:
    text = source(package, "entrypoints/llm.py").text
    changed = tmp_path / "llm.py"
    changed.write_text(text.replace("prompt_token_ids:", "prompt_ids:"))
    known = parameters(Source(changed).method("LLM", "generate"))
    assert "prompt_token_ids" not in known


def engram(package: Path) -> Source:
    return Source(package.parent / "deepinfer_ep-2.5.0" / "deep_ep" / "buffers" / "engram.py")


def test_probe_calls_the_real_engram_buffer(package: Path) -> None:
    """Every keyword, and the order of what harness/inside/gin_probe.py passes by position."""
    buffer = engram(package)
    known = parameters(buffer.method("EngramBuffer", "__init__"))
    passed = set(ENGRAM)
    assert passed <= set(known)
    assert {name for name, default in known.items() if default == REQUIRED} <= passed
    shape = ["num_entries_per_layer", "hidden", "num_max_tokens", "num_entries_per_token"]
    hint = parameters(buffer.method("EngramBuffer", "get_storage_size_hint"))
    assert list(hint)[:5] == ["group", *shape]
    assert list(parameters(buffer.method("EngramBuffer", "set_config")))[:4] == shape
    config = parameters(buffer.method("EngramBuffer", "get_theoretical_config"))
    assert list(config)[:4] == ["group", "num_layers", "num_max_tokens", "num_entries_per_token"]
    assert next(iter(parameters(buffer.method("EngramBuffer", "write")))) == "storages"
    assert next(iter(parameters(buffer.method("EngramBuffer", "fetch")))) == "indices"


def test_outcomes_are_deepeps_own_words(package: Path) -> None:
    kernels = package.parent / "deepinfer_ep-2.5.0" / "csrc" / "kernels" / "comm"
    text = (kernels / "context.cpp").read_text() + (kernels / "symmetric.hpp").read_text()
    for words in (
        "NCCL GIN is unavailable",
        "NCCL GDAKI is unavailable",
        "`pidfd_open` failed",
        "`pidfd_getfd` failed",
    ):
        assert words in text
        assert gin_probe.outcome_of(1, words) != "unknown"
