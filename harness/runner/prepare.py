"""What comes before anything is measured: host, images, code, RDMA, model."""

from __future__ import annotations

import shutil
from dataclasses import replace

from harness.console import Progress
from harness.errors import HostError
from harness.files import write_text
from harness.host.facts import HostFacts
from harness.model import tiny_llama
from harness.model.hub import HubStore
from harness.runner.context import Context
from harness.runner.preflight import (
    checks,
    read_room,
    remarks,
    require,
    without_rdma,
)
from harness.runner.preparation_steps import copy_code, prepare_images, prepare_model
from harness.runner.probe_rdma import probe_rdma
from harness.runner.site import Site
from harness.runner.steps import CopyCode, GenerateModel
from harness.runtime.docker_engine import connect, read_facts
from harness.suite.plan import Plan


def preflight(plan: Plan, facts: HostFacts, site: Site, progress: Progress) -> HostError | None:
    """Check the host before anything is written; return why sessions that need RDMA cannot run.

    Raises:
        HostError: the host does not meet the plan's needs, or no session can run.
    """
    if plan.runtime == "local":
        return None
    engine = read_facts(connect())
    progress.say(f"Docker {engine.version}, {engine.storage} in {engine.data_root}.")
    require(list(checks(plan, facts, engine, read_room(site.cache, site.model))), progress)
    for remark in remarks(plan, facts):
        progress.say(f"  remark: {remark}")
    needing = [session for session in plan.sessions if session.needs_rdma]
    if not needing:
        return None
    for reason in site.rdma.reasons():
        progress.say(f"  RDMA {reason}")
    unfit = without_rdma(plan, site.rdma)
    if unfit is not None and len(needing) == len(plan.sessions):
        raise unfit
    if unfit is not None:
        progress.say(unfit.render())
    return unfit


def prepare(
    context: Context, site: Site, unfit: HostError | None
) -> tuple[Context, HostError | None]:
    """Make images and model ready; return the context, and why some sessions cannot run.

    Raises:
        HostError: too little space, or no session can run.
        ImageError: an image or the model could not be made ready, or is not what is pinned.
    """
    for step in prepare_images(context.planned):
        context.writer.image(step.image, context.runtime.prepare(step.image))
    _copy(copy_code(context.planned))
    if unfit is None:
        context, unfit = _probe(context, site)
    _prepare_model(context, site)
    return context, unfit


def _probe(context: Context, site: Site) -> tuple[Context, HostError | None]:
    """Probe RDMA if a session still to be run needs it.

    Without RDMA the sessions that do not need it still run, if there are any.
    """
    directory = context.directory
    needing = [session for session in context.plan.sessions if session.needs_rdma]
    if all(directory.finished(cell) for session in needing for cell in session.cells):
        return context, None
    try:
        working = probe_rdma(context, needing[0], site.rdma)
    except HostError as error:
        if len(needing) == len(context.plan.sessions):
            raise
        context.progress.say(error.render())
        return context, error
    context.writer.rdma(working.reasons())
    return replace(context, runtime=context.runtime.with_rdma(working)), None


def _copy(step: CopyCode) -> None:
    """Copy Python files; what an earlier version of the kit left there is removed."""
    shutil.rmtree(step.folder, ignore_errors=True)
    for source, folder in step.copies:
        for file in sorted(source.rglob("*.py")) if source.is_dir() else [source]:
            target = folder / file.relative_to(source.parent)
            write_text(target, file.read_text(encoding="utf-8"))


def _prepare_model(context: Context, site: Site) -> None:
    """Generate the model, or download and verify it."""
    step = prepare_model(context.planned, own=site.model is not None)
    if isinstance(step, GenerateModel):
        tiny_llama.generate(step.folder)
        return
    store = HubStore(cache=site.cache, clock=context.clock, progress=context.progress)
    _, evidence = store.ensure(step.model, step.folder if step.own else None)
    context.writer.model(evidence)
