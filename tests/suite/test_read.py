"""A mistake in a suite is found with its file, its line and the nearest valid name."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.suite.read import read_suite, recipes_folder, suite_names
from tests.conftest import Kit


def mistake(kit: Kit, name: str, old: str, new: str) -> str:
    """Put a mistake into a file of the test suite; return the error's first part."""
    kit.write_suite()
    path = kit.folder / "recipes" / "test" / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(UsageError) as caught:
        read_suite("test", kit.folder / "recipes")
    assert caught.value.exit_code == 2
    return caught.value.what.replace(f"{path.parent}/", "")


@pytest.mark.parametrize("name", suite_names(recipes_folder()))
def test_suites_of_the_clone_load(name: str) -> None:
    assert read_suite(name, recipes_folder()).name == name


def test_unknown_suite(kit: Kit) -> None:
    kit.write_suite()
    with pytest.raises(UsageError, match="unknown suite 'tset', did you mean 'test'"):
        read_suite("tset", kit.folder / "recipes")


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("suite.yaml", "  prompts: 2", "  prompt: 2",
         "suite.yaml:LINE: warmup.prompt: unknown key, did you mean 'prompts'?"),
        ("suite.yaml", "    input_len: 128", "    input_length: 128",
         "suite.yaml:LINE: workloads.128-8-c2.input_length: unknown key, did you mean 'input_len"),
        ("suite.yaml", "    concurrency: 2", "    concurrency: two",
         "suite.yaml:LINE: workloads.128-8-c2.concurrency: Input should be a valid integer"),
        ("suite.yaml", "    concurrency: 2", "    concurrency: 0",
         "suite.yaml:LINE: workloads.128-8-c2.concurrency: Input should be greater than or equal"),
        ("suite.yaml", "- recipe: offline", "- recipe: ofline",
         "suite.yaml:LINE: unknown recipe 'ofline', did you mean 'offline'?"),
        ("suite.yaml", "  - 1k-1-c1", "  - 1k-1-c2",
         "suite.yaml:LINE: unknown workload '1k-1-c2', did you mean '1k-1-c1'?"),
        ("server.yaml", "--enforce-eager: it is", "--enforce-egaer: it is",
         "server.yaml:6: the file: no reason given under `why` for: --enforce-eager"),
        ("server.yaml", "engine: vllm-server", "engine: vllm-sever",
         "server.yaml:3: engine: must be one of vllm-server, vllm-offline, deepinfer, not 'vllm-s"),
        ("server.yaml", "image: vllm-cpu", "image: vllm-cpu\nimge: x",
         "server.yaml:5: imge: unknown key, did you mean 'image'?"),
        ("offline.yaml", "extends: server", "extends: servr",
         "offline.yaml:2: unknown recipe 'servr', did you mean 'server'?"),
    ],
)  # fmt: skip
def test_mistakes(kit: Kit, name: str, old: str, new: str, message: str) -> None:
    found = mistake(kit, name, old, new)
    lines = (kit.folder / "recipes" / "test" / name).read_text().splitlines()
    line = lines.index(next(each for each in lines if new.splitlines()[0] in each)) + 1
    assert found.startswith(message.replace("LINE", str(line)))


def difference(kit: Kit, text: str) -> Path:
    """Append differences to the recipe that extends another."""
    kit.write_suite()
    path = kit.folder / "recipes" / "test" / "offline.yaml"
    path.write_text(path.read_text() + text)
    return path


def test_recipe_takes_settings_away_with_null(kit: Kit) -> None:
    difference(kit, "args:\n  --enforce-eager: null\nwhy:\n  --enforce-eager: to see\n")
    recipe = read_suite("test", kit.folder / "recipes").recipes["offline"]
    assert recipe.args == {}
    assert recipe.why == {}


def test_offline_recipe_of_the_smoke_suite_differs_from_the_server_as_written() -> None:
    recipes = read_suite("smoke", recipes_folder()).recipes
    server, offline = recipes["vllm"], recipes["vllm-offline"]
    assert offline.args == server.args
    assert set(offline.env.items()) - set(server.env.items()) == {
        ("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
    }


def test_a_folder_is_all_that_a_new_suite_needs(kit: Kit) -> None:
    kit.write_suite()
    assert suite_names(kit.folder / "recipes") == ["test"]
    assert suite_names(Path("/nowhere")) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("args:\n  --enforce-egaer: null\n",
         "removes a setting that 'server' does not have, did you mean '--enforce-eager'?"),
        ("args:\n  --enforce-eager: null\n", "differs from 'server' without a reason of its own"),
        ("args:\n  --enforce-eager: 7\n", "differs from 'server' without a reason of its own"),
        ("args:\n  --new: 7\n", "differs from 'server' without a reason of its own"),
    ],
)  # fmt: skip
def test_a_difference_that_is_none_or_unexplained(kit: Kit, text: str, message: str) -> None:
    path = difference(kit, text)
    with pytest.raises(UsageError) as caught:
        read_suite("test", kit.folder / "recipes")
    line = len(path.read_text().splitlines())
    assert caught.value.what.startswith(f"{path}:{line}: args.")
    assert message in caught.value.what


COMPARED = (
    "compares_with: {suite: smoke, recipes: {}, workloads: {}}\n",
    "compares_with: {suite: test, recipes: {servr: server}, workloads: {}}\n",
    "compares_with: {suite: test, recipes: {}, workloads: {1k-1-c1: 1k-1-c2}}\n",
)


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("server.yaml", "  --enforce-eager: true", "  --enforce-eager: false", "true or left out"),
        ("server.yaml", "  --enforce-eager: true", "  --enforce-eager: null", "true or left out"),
        ("server.yaml", "  --enforce-eager: true", "  --port: 8000", "the kit sets this itself"),
        ("server.yaml", "args:\n  --enforce-eager: true", "args: [x]", "a block of keys"),
        ("server.yaml", "title: A server", "title: 7", "text is expected, not 7: put it in quotes"),
        ("server.yaml", "why:\n  --enforce-eager: it is a test", "why:\n  --enforce-eager: ''",
         "at least 1 character"),
        ("suite.yaml", "  - 1k-1-c1\n- recipe", "  - 128-8-c2\n- recipe", "planned twice"),
        ("suite.yaml", "schema_version: 1", "schema_version: 2", "must be one of 1, not 2"),
        ("server.yaml", "args:\n  --enforce-eager", "args:\n  --enforce-eagre",
         "did you mean '--enforce-eager'?"),
        ("suite.yaml", "warmup:", f"{COMPARED[0]}warmup:", "unknown suite 'smoke'"),
        ("suite.yaml", "warmup:", f"{COMPARED[1]}warmup:", "unknown recipe 'servr', did you mean"),
        ("suite.yaml", "warmup:", f"{COMPARED[2]}warmup:", "unknown workload '1k-1-c2', did you"),
        ("suite.yaml", "  generator: tiny-llama", "  generator: tiny-lama", "not 'tiny-lama'"),
    ],
)  # fmt: skip
def test_rules_of_a_file(kit: Kit, name: str, old: str, new: str, message: str) -> None:
    assert message in mistake(kit, name, old, new)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a block of keys is expected here"),
        ("- a\n", "a block of keys is expected here"),
        ("title: \x00\n", "not text"),
        ("? [a]\n: b\n", "a key must be a word"),
        ("args: &a\n  --x: *a\n", "an alias refers to a block that contains it"),
    ],
)
def test_a_file_that_is_no_recipe(kit: Kit, text: str, message: str) -> None:
    kit.write_suite()
    path = kit.folder / "recipes" / "test" / "server.yaml"
    path.write_text(text)
    with pytest.raises(UsageError, match=message) as caught:
        read_suite("test", kit.folder / "recipes")
    assert str(path) in caught.value.what


def test_made_up_routing_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "deepseek-v41-flash-8xb300"
    folder.mkdir()
    for source in (recipes_folder() / folder.name).glob("*.yaml"):
        (folder / source.name).write_text(source.read_text())
    path = folder / "deepinfer.yaml"
    text = path.read_text().replace("env:\n", 'env:\n  DEEPINFER_FORCE_LOAD_BALANCE: "1"\n')
    path.write_text(text)
    with pytest.raises(UsageError, match="made-up one: DEEPINFER_FORCE_LOAD_BALANCE"):
        read_suite(folder.name, tmp_path)
