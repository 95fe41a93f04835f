"""Which suite is taken on which host, and what an option must name."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
import yaml

from harness.cli.choose import FALLBACK_SUITE, choose_images, choose_suite
from harness.cli.options import ImageOptions
from harness.errors import UsageError
from harness.host.facts import Gpu
from harness.runtime.images import images_folder
from tests.conftest import FACTS, Kit

GPU = Gpu(index=0, name="Made-up GPU 1", memory_mib=1, driver="1")


@pytest.fixture
def recipes(kit: Kit) -> Path:
    """Two suites of the same content: one for a host with a made-up GPU, one for any."""
    kit.suite["hardware"] = {"gpu_name_prefix": "Made-up", "gpu_count": 1}
    kit.write_suite()
    folder = kit.folder / "recipes"
    (folder / FALLBACK_SUITE).mkdir()
    for path in (folder / "test").iterdir():
        (folder / FALLBACK_SUITE / path.name).write_text(path.read_text())
    any_host = {name: value for name, value in kit.suite.items() if name != "hardware"}
    (folder / FALLBACK_SUITE / "suite.yaml").write_text(yaml.safe_dump(any_host))
    return folder


def test_a_suite_made_for_the_host_is_taken_there_alone(recipes: Path) -> None:
    host = dataclasses.replace(FACTS, gpus=(GPU,))
    assert choose_suite(None, host, recipes).name == "test"
    assert choose_suite(None, FACTS, recipes).name == FALLBACK_SUITE


def test_a_suite_that_is_named_is_taken_on_any_host(recipes: Path) -> None:
    assert choose_suite("test", FACTS, recipes).name == "test"


def test_a_base_that_the_lock_lacks_is_wrong_use() -> None:
    options = ImageOptions(bases={"cua": "stand-in:1"}, build_args={})
    with pytest.raises(UsageError, match="--base cua: no such base, did you mean 'cuda'"):
        choose_images(options, images_folder())
