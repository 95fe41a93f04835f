"""The steps before any engine starts: images, code, the RDMA probe, model, prompts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import JsonValue

from harness.engines.base import InProcessEngine
from harness.engines.client import dataset_args
from harness.engines.gin_probe import PROBE_SECONDS, Attempt, probe_command, probe_job
from harness.engines.registry import ENGINES
from harness.runner.planned_run import PlannedRun
from harness.runner.steps import (
    CopyCode,
    DownloadModel,
    GenerateModel,
    MakePrompts,
    PrepareImage,
    ProbeRdma,
)
from harness.runtime.base import inside_command
from harness.suite.model import HubModel
from harness.suite.plan import RequestSet, Session

PROBES = "rdma-probe"
GRACE_SECONDS = 30.0
"""For a probe's container and interpreter, on top of the probe's own limit."""


def prepare_images(run: PlannedRun) -> Iterator[PrepareImage]:
    """Yield the step for every image."""
    for image in run.plan.pins:
        yield PrepareImage(image=image)


def copy_code(run: PlannedRun) -> CopyCode:
    """Return the step that copies the code for engines' environments."""
    package = Path(__file__).resolve().parents[1]
    engines = [ENGINES[name] for name in run.plan.by_engine]
    modules = [
        module
        for engine in engines
        if isinstance(engine, InProcessEngine)
        for module in engine.modules
    ]
    return CopyCode(
        folder=run.directory.code,
        package=(package / "inside", package / "__init__.py"),
        modules=tuple(dict.fromkeys(modules)),
    )


def probe(run: PlannedRun, session: Session, attempt: Attempt) -> ProbeRdma:
    """Return one attempt at finding out whether RDMA works with the grants of ``session``."""
    folder = run.directory.path / PROBES / attempt.name
    job = folder / "job.json"
    return ProbeRdma(
        title=f"probe RDMA, {attempt.name}",
        expected_s=PROBE_SECONDS / 2,
        limit_s=PROBE_SECONDS + GRACE_SECONDS,
        command=probe_command(session, attempt, job, run.directory.code),
        log=folder / "launcher.log",
        jobs={job: probe_job(session, folder)},
        attempt=attempt,
    )


def prepare_model(run: PlannedRun, *, own: bool) -> GenerateModel | DownloadModel:
    """Return the step that makes the model ready; ``own``: the user already has it."""
    model = run.plan.model
    if isinstance(model, HubModel):
        return DownloadModel(model=model, folder=run.model_folder, own=own)
    return GenerateModel(name=model.name, folder=run.model_folder)


def make_prompts(run: PlannedRun, sets: Sequence[RequestSet]) -> MakePrompts:
    """Return the step that makes the prompts of ``sets``, inside vLLM's environment."""
    folder = run.directory.path / "prompts"
    job = folder / "job.json"
    return MakePrompts(
        title=f"make the prompts of {len(sets)} request sets",
        expected_s=run.plan.estimates.prompts_s,
        limit_s=run.plan.limits.wave_s,
        command=inside_command(
            "prompts",
            job,
            run.directory.code,
            role="prompts",
            image=run.plan.prompts_image,
            reads=(run.model_folder,),
            writes=(folder,),
        ),
        log=folder / "prompts.log",
        jobs={job: _prompts_job(run, sets)},
    )


def _prompts_job(run: PlannedRun, sets: Sequence[RequestSet]) -> JsonValue:
    """Return the job file's content for `harness.inside.prompts`."""
    root, model = run.directory.path, run.model
    return {
        "model": model.folder,
        "tokenizer_mode": model.tokenizer_mode,
        "sets": [
            {
                "client_args": list(dataset_args(model, requests)),
                "ids": f"{root}/{requests.prompts_file}",
                "manifest": f"{root}/{requests.manifest_file}",
            }
            for requests in sets
        ],
    }
