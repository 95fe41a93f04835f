"""Make the prompts of every request set before any engine starts, once for all engines."""

from __future__ import annotations

from harness.errors import EngineError
from harness.files import sha256_of
from harness.runner.context import Context
from harness.runner.preparation_steps import make_prompts
from harness.suite.plan import RequestSet


def ensure_prompts(context: Context) -> None:
    """Make the prompts that do not exist yet, and check all of them against their manifests.

    Raises:
        EngineError: they could not be made, or are not what was asked for.
    """
    directory, plan = context.directory, context.plan
    missing = [requests for requests in plan.request_sets if directory.manifest(requests) is None]
    if missing:
        step = make_prompts(context.planned, missing)
        context.run_tool(step, step.title, context.progress.tick)
    for requests in plan.request_sets:
        _check(context, requests)


def _check(context: Context, requests: RequestSet) -> None:
    """Refuse prompts that have changed since, or whose lengths are not the workload's."""
    path = context.directory.path / requests.prompts_file
    manifest = context.directory.manifest(requests)
    if manifest is None or not path.exists() or sha256_of(path) != manifest.sha256:
        raise EngineError(
            f"the prompts in {path} do not match their manifest",
            usually="the file was changed or cut off after it was made",
            next_step="start a new run: nox -s reproduce -- --fresh",
        )
    wrong = sorted({length for length in manifest.lengths if length != requests.input_len})
    if manifest.count != requests.prompts or wrong:
        raise EngineError(
            f"{path} holds {manifest.count} prompts of {wrong or requests.input_len} tokens, "
            f"expected {requests.prompts} of {requests.input_len}",
            usually="the model's tokenizer does not encode decoded text to the same tokens again",
            next_step=f"read {path.parent.parent / 'prompts.log'}",
        )
