"""The real vLLM environment, installed at first use and kept as the smoke suite keeps it."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cli.verbs import default_cache
from harness.clock import SystemClock
from harness.console import ConsoleProgress
from harness.process import Owner
from harness.runtime.images import Images, images_folder
from harness.runtime.local import LocalRuntime


@pytest.fixture(scope="session")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> LocalRuntime:
    """The runtime of a smoke run, with the environment made."""
    from rich.console import Console

    clock = SystemClock()
    made = LocalRuntime(
        images=Images(images_folder()),
        cache=default_cache(),
        owner=Owner("test-real", tmp_path_factory.mktemp("real") / "processes.jsonl", clock),
        clock=clock,
        progress=ConsoleProgress(Console(stderr=True), clock),
    )
    made.prepare("vllm-cpu")
    return made


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny model's folder."""
    from harness.model import tiny_llama

    folder = tmp_path_factory.mktemp("model")
    tiny_llama.generate(folder)
    return folder
