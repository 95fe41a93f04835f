"""The publication as data: its tables byte for byte, its claims complete and consistent."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import pytest
import yaml

from harness.cli.main import main
from harness.errors import UsageError
from harness.suite.published import Claim, PublishedFile
from harness.suite.read import read_suite, recipes_folder
from harness.suite.schema import json_schemas
from tests.conftest import RESOURCES, Kit

SUITE = "deepseek-v41-flash-8xb300"
GOLDEN = RESOURCES / "published" / "article-tables.md"


@functools.cache
def published() -> PublishedFile:
    found = read_suite(SUITE, recipes_folder()).published
    assert found
    return found


def claims() -> dict[str, Claim]:
    return {claim.id: claim for claim in published().claims}


def test_tables_are_the_articles_byte_for_byte(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["published", SUITE]) == 0
    printed = [line for line in capsys.readouterr().out.split("\n") if line.startswith("|")]
    article = [line.rstrip(" ") for line in GOLDEN.read_text().splitlines()]
    assert article
    assert [line.rstrip(" ") for line in printed] == article


def test_every_number_of_the_tables_is_a_claim() -> None:
    numbers = re.findall(r"(?<=\| )[\d,.]+(?= ms|×| \|)", GOLDEN.read_text())
    concurrency = {"2,048", "4,096", "512"}
    wanted = sorted(float(n.replace(",", "")) for n in numbers if n not in concurrency)
    found = sorted(
        claim.value or 0
        for name, claim in claims().items()
        if claim.where.startswith(("decode table", "comparison table"))
    )
    assert wanted
    assert found == wanted


def test_totals_are_stored_as_printed_and_agree_with_their_rows() -> None:
    suite = read_suite(SUITE, recipes_folder()).file
    for name, claim in claims().items():
        if name.endswith(".total"):
            workload = suite.workloads[name.split(".")[1]]
            output = claims()[name.replace(".total", ".output")].value
            assert output
            derived = output * (workload.input_len + workload.output_len) / workload.output_len
            assert claim.value == pytest.approx(derived, rel=5e-3)
    assert claims()["decode.1k-1k-c2048.total"].value == 109969


def test_headlines_follow_from_the_tables() -> None:
    found = claims()
    for name, claim in found.items():
        if claim.measured_by and claim.measured_by.ratio and claim.precision:
            above, below = (
                published().value(recipe, claim.measured_by.workload, claim.measured_by.metric)
                for recipe in claim.measured_by.ratio
            )
            assert above
            assert below
            assert claim.value == pytest.approx(above / below, abs=claim.precision / 2 + 1e-9), name
    assert found["prefill.per-gpu"].value == pytest.approx(658000 / 8, abs=500)
    assert found["limits.per-node"].value == 8 * (found["limits.per-rank"].value or 0)
    assert found["model.routed-experts"].value == 8 * (found["model.experts-per-gpu"].value or 0)


def test_claims_that_repeat_a_measurement_point_to_its_first() -> None:
    for claim in claims().values():
        if claim.same_as:
            first = claims()[claim.same_as]
            assert first.same_as is None, claim.id
            assert first.measured_by
            assert claim.measured_by
            assert claim.measured_by.workload == first.measured_by.workload


def test_what_the_article_does_not_state_is_listed() -> None:
    assert {each.what for each in published().not_stated} == {
        "vLLM version", "vLLM flags", "number of prompts", "seeds", "repeats", "warm-up",
        "temperature", "concurrency of the 8K prefill", "mean or median TPOT", "host",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("    precision: 1\n", "    precison: 1\n", "unknown key, did you mean 'precision'?"),
        ("kind: value", "kind: text", "a claim of kind text takes exactly: text"),
        ("    precision: 1\n", "", "a number needs a unit and the precision"),
        ("workload: 128-1k-c2048", "workload: 128-1k-c204",
         "unknown workload '128-1k-c204', did you mean '128-1k-c2048'?"),
        ("recipe: vllm,", "recipe: vlm,", "unknown recipe 'vlm', did you mean 'vllm'?"),
        ("same_as: decode.128-1k-c2048.output", "same_as: decode.128-1k", "which is not a claim"),
        ("order: [engines,", "order: [engine,", "unknown table 'engine', did you mean 'engines'?"),
    ],
)  # fmt: skip
def test_mistakes_are_found_with_their_line(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    folder = tmp_path / SUITE
    folder.mkdir()
    for source in (recipes_folder() / SUITE).glob("*.yaml"):
        (folder / source.name).write_text(source.read_text())
    path = folder / "published.yaml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(UsageError, match=r"published\.yaml:\d+: ") as caught:
        read_suite(SUITE, tmp_path)
    assert message in caught.value.what


def test_suite_without_a_publication_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["published", "smoke"]) == 2
    assert "has no publication" in capsys.readouterr().err


def test_schemas_for_editors_are_current() -> None:
    folder = recipes_folder() / "schema"
    on_disk = {path.name: path.read_text() for path in folder.iterdir()}
    assert on_disk == json_schemas(), "next: python -m harness schema"


def test_every_file_names_its_schema() -> None:
    for path in recipes_folder().glob("*/*.yaml"):
        first = path.read_text().splitlines()[0]
        kind = path.stem if path.stem in ("suite", "published") else "recipe"
        assert first == f"# yaml-language-server: $schema=../schema/{kind}.schema.json", path


def test_another_benchmark_is_another_folder(kit: Kit) -> None:
    kit.write_suite()
    claim = {
        "id": "decode.output", "kind": "value", "value": 8, "unit": "tok/s", "precision": 1,
        "where": "its only table",
        "measured_by": {
            "recipe": "server", "workload": "128-8-c2", "metric": "output_throughput"
        },
    }  # fmt: skip
    text = {"schema_version": 1, "title": "T", "url": "U", "date": "D", "claims": [claim]}
    folder = kit.folder / "recipes" / "test"
    (folder / "published.yaml").write_text(yaml.safe_dump(text))
    suite = read_suite("test", kit.folder / "recipes")
    assert suite.published
    assert suite.published.value("server", "128-8-c2", "output_throughput") == 8
    assert set(suite.recipes) == {"server", "offline"}
