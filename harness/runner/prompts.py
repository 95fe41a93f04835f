"""Make every set of prompts before any engine starts, once for all engines."""

from __future__ import annotations

from pathlib import Path

from pydantic import JsonValue

from harness.engines.client import ClientModel, dataset_args
from harness.errors import EngineError
from harness.files import sha256_of, write_json
from harness.runner.context import Context
from harness.runtime.base import Command, inside_command
from harness.suite.plan import RequestSet


def prompts_job(model: ClientModel, sets: list[RequestSet], root: str) -> dict[str, JsonValue]:
    """Return the job file's content for `harness.inside.prompts`."""
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


def prompts_command(image: str, model: ClientModel, job: Path, code: Path) -> Command:
    """Return the command that makes them, inside the engine's environment."""
    return inside_command(
        "prompts",
        job,
        code,
        role="prompts",
        image=image,
        reads=(Path(model.folder),),
        writes=(job.parent,),
    )


def make_prompts(context: Context) -> None:
    """Make the sets that are not there yet, and check all of them against their manifests.

    Raises:
        EngineError: they could not be made, or are not what was asked for.
    """
    directory, plan = context.directory, context.plan
    missing = [requests for requests in plan.request_sets if directory.manifest(requests) is None]
    if missing:
        job = directory.path / "prompts" / "job.json"
        write_json(job, prompts_job(context.model, missing, str(directory.path)))
        command = prompts_command(plan.prompts_image, context.model, job, directory.code)
        log = directory.path / "prompts" / "prompts.log"
        text = f"make {len(missing)} sets of prompts"
        with context.progress.step(text, expected_s=plan.estimates.prompts_s):
            context.run_tool(command, log, text, plan.limits.wave_s)
    for requests in plan.request_sets:
        _check(context, requests)


def _check(context: Context, requests: RequestSet) -> None:
    """Refuse prompts that were changed since, or whose lengths are not the workload's."""
    path = context.directory.path / requests.prompts_file
    manifest = context.directory.manifest(requests)
    if manifest is None or not path.exists() or sha256_of(path) != manifest.sha256:
        raise EngineError(
            f"the prompts in {path} are not those of their manifest",
            usually="the file was changed or cut off after it was made",
            next_step="start rebuild: nox -s reproduce -- --fresh",
        )
    wrong = sorted({length for length in manifest.lengths if length != requests.input_len})
    if manifest.count != requests.prompts or wrong:
        raise EngineError(
            f"the prompts in {path} are {manifest.count} of {wrong or requests.input_len} tokens, "
            f"wanted {requests.prompts} of {requests.input_len}",
            usually="the model's tokenizer does not give decoded text its old tokens back",
            next_step=f"read {path.parent.parent / 'prompts.log'}",
        )
