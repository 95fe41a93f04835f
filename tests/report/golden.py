"""Whole reports of synthetic runs, kept in tests/report/golden/ and compared with what is written.

No test ever writes them. After an intended change of the report, run

    python -m tests.report.golden

then read the diff of tests/report/golden/ and commit it with the change.
"""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from pydantic import JsonValue

from harness.report.render import write_report
from harness.results.run_directory import RunDirectory
from harness.runner.reference import reference_of
from harness.suite.plan import Cell, Plan
from harness.suite.planner import Choice, make_plan
from harness.suite.published import PublishedFile
from harness.suite.read import read_suite, recipes_folder
from tests.conftest import Kit
from tests.report.raw_files import Wave
from tests.report.synthetic import Broken, SyntheticRun

FOLDER = Path(__file__).parent / "golden"
B300 = "deepseek-v41-flash-8xb300"
NOTICE = (
    "Synthetic: nothing here was measured, on any machine. Every number was made up by a test, "
    "to show what a report looks like."
)
FACTORS = {"vllm": 1.02, "vllm-graphs-1536": 0.5, "deepinfer": 1.5, "deepinfer-step": 1.75}
"""How far each recipe's synthetic numbers are from the published ones."""


def published_suite(path: Path) -> RunDirectory:
    """Write a run of the published suite on 8 B300 in which every cell has its numbers."""
    suite = read_suite(B300, recipes_folder())
    reference = reference_of(suite, recipes_folder())
    assert suite.published
    assert reference
    pins = {recipe.image: "0" * 64 for recipe in suite.recipes.values()}
    plan = make_plan(suite, Choice(), pins=pins, kit_version="0.0")
    published = suite.published

    def number(cell: Cell) -> Wave:
        source = suite.recipes[cell.recipe].extends
        for recipe in (cell.recipe, source) if source else (cell.recipe,):
            if found := _published(published, recipe, cell, FACTORS[cell.recipe]):
                return found
        raise AssertionError(cell.id)

    return SyntheticRun(
        plan=_synthetic(plan),
        number=number,
        gpus=("NVIDIA B300 SXM6 AC",) * 8,
        images=IMAGES,
        model=MODEL,
        rdma=(
            "mlx5_0 (uverbs0): passed through, mlx5, active, Ethernet",
            "mlx5_1: left out, no port",
        ),
        version={"vllm-server": "0.31.0", "deepinfer": "0.1.0"},
        reference=reference.model_dump(mode="json"),
    ).write(path)


def _published(published: PublishedFile, recipe: str, cell: Cell, factor: float) -> Wave | None:
    """Return a cell's published numbers times ``factor``; None where none are published."""
    lengths = cell.requests
    output = published.value(recipe, cell.workload, "output_throughput")
    if given := published.value(recipe, cell.workload, "input_throughput"):
        output = given * lengths.output_len / lengths.input_len
    if output is None:
        return None
    tpot = published.value(recipe, cell.workload, "mean_tpot_ms")
    return Wave(
        output_throughput=output * factor,
        mean_tpot_ms=tpot / factor if tpot else None,
        acceptance_percent=published.value(recipe, cell.workload, "acceptance_percent"),
    )


def incomplete(path: Path) -> RunDirectory:
    """Write a run that mixes measured, invalid, failed and missing cells."""
    with tempfile.TemporaryDirectory() as folder:
        plan = Kit(Path(folder)).plan(repeats=2)
    decode = Wave(output_throughput=800.0, mean_tpot_ms=2.0)
    prefill = Wave(output_throughput=2.5)
    reason = "the client failed (exit 1): [Errno 111] connect(*) to `::1` refused | <no server>"
    numbers: Mapping[str, Wave | Broken] = {
        "server/128-8-c2/r1": decode,
        "server/128-8-c2/r2": Broken("invalid", decode),
        "server/1k-1-c1/r1": Broken("failed", prefill, reason),
        "offline/128-8-c2/r1": decode,
        "offline/128-8-c2/r2": dataclasses.replace(decode, output_throughput=900.0),
    }
    return SyntheticRun(
        plan=_synthetic(plan),
        number=lambda cell: numbers.get(cell.id),
        images={"vllm-cpu": {"image": "vllm-cpu", "torch": [TORCH]}},
    ).write(path)


def _synthetic(plan: Plan) -> Plan:
    return dataclasses.replace(plan, title=f"Synthetic: {plan.title}", notice=NOTICE)


TORCH: JsonValue = {"name": "torch", "file": "torch-0.0-synthetic.whl", "sha256": "0" * 64}

IMAGES: dict[str, dict[str, JsonValue]] = {
    "deepinfer": {
        "reference": "b300-repro/deepinfer:synthetic",
        "id": "sha256:" + "1" * 64,
        "base": {"reference": "local/base:synthetic", "how": "a local image in its place"},
        "sources": ["deepinfer 0.1.0 sha256:" + "2" * 64],
        "build_args": {"CUDA_VERSION": "13.1", "SDIST_DEEPINFER": "not shown"},
        "labels": {"b300-repro.torch.note": "torch is another build", "maintainer": "not shown"},
    },
    "vllm": {
        "reference": "vllm/vllm-openai@sha256:" + "3" * 64,
        "id": "sha256:" + "4" * 64,
        "base": {"reference": "vllm/vllm-openai", "how": "digest of the lock"},
    },
}

MODEL: dict[str, JsonValue] = {
    "repository": "deepseek-ai/DeepSeek-V4.1-Flash-1017",
    "revision": "5" * 40,
    "revision_from": "locked at the first download",
    "files": {"config.json": {"size": 1, "sha256": "6" * 64}},
}

RUNS: Mapping[str, Callable[[Path], RunDirectory]] = {
    "published-suite.md": published_suite,
    "incomplete.md": incomplete,
}
"""The golden files, and the run that each is the report of."""


def main() -> None:
    """Rewrite every golden report."""
    for name, make in RUNS.items():
        with tempfile.TemporaryDirectory() as folder:
            directory = make(Path(folder))
            write_report(directory)
            (FOLDER / name).write_text(directory.report.read_text(encoding="utf-8"), "utf-8")
        print(FOLDER / name)


if __name__ == "__main__":
    main()
