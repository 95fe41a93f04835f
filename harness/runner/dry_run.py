"""Print every command of a plan in full, from the same functions that a run uses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from harness.clock import duration
from harness.engines.vllm_offline import driver_command
from harness.engines.vllm_server import HOST, serve_command
from harness.measure.client import ClientModel
from harness.results.run_directory import RunDirectory
from harness.runner.prompts import prompts_command
from harness.runner.server_session import cell_command, warmup_command
from harness.runtime.base import Runtime
from harness.suite.plan import Plan, Session

PORT = 8000
"""Port in printed commands; a run takes a free one."""


def describe(plan: Plan) -> Iterator[str]:
    """Yield the plan for people: what would happen, in order, and how long it takes."""
    yield f"{plan.title} (suite {plan.suite}, runtime {plan.runtime})"
    if plan.notice:
        yield plan.notice
    yield ""
    yield (
        f"{len(plan.cells)} cells in {len(plan.sessions)} engine sessions, about "
        f"{duration(plan.expected_s)} after installation (from {plan.estimates.source})"
    )
    for image, pin in plan.pins.items():
        yield f"image {image}, locks sha256 {pin[:16]}"
    yield f"prompts: {len(plan.loads)} sets, made before any engine starts"
    for session in plan.sessions:
        yield ""
        yield f"{session.recipe}: {session.title}"
        start = plan.estimates.engine_start_s + session.warmup_s
        yield f"  start, and {len(session.warmups)} warm-ups: about {duration(start)}"
        for cell in session.cells:
            load = cell.load
            yield (
                f"  {cell.id}: {load.prompts:,} x {load.input_len:,} -> {load.output_len:,} "
                f"tokens, {load.concurrency:,} at once, seed {load.seed}, "
                f"about {duration(cell.expected_s)}"
            )
    yield ""
    yield f"plan {plan.hash()}"


def commands(plan: Plan, runtime: Runtime, reports: Path) -> Iterator[str]:
    """Yield every command of the run, ready to paste, with comments that say when it runs."""
    directory = RunDirectory(reports / f"{plan.suite}-RUN")
    model = ClientModel(name=plan.model.name, folder=str(directory.model(plan.model.name)))
    for image in plan.pins:
        yield f"# image {image}: once, kept for later runs"
        yield from runtime.preparation(image)
    yield "# prompts, before any engine starts"
    job = str(directory.path / "prompts" / "job.json")
    yield runtime.line(prompts_command(plan.sessions[0].image, job, str(directory.code)))
    for session in plan.sessions:
        yield ""
        yield from _session(session, model, directory, runtime)


def _session(
    session: Session, model: ClientModel, directory: RunDirectory, runtime: Runtime
) -> Iterator[str]:
    folder = directory.path / "sessions" / session.recipe / "1"
    if session.engine != "vllm-server":
        yield f"# {session.recipe}: one process for warm-ups and all {len(session.cells)} cells"
        yield runtime.line(driver_command(session, folder / "job.json", directory.code))
        return
    yield f"# {session.recipe}: the server, up for the whole session"
    yield runtime.line(serve_command(session, model, PORT))
    yield f"# {session.recipe}: warm-ups, discarded"
    yield runtime.line(warmup_command(session, folder / "warmup.json", directory.code))
    for cell in session.cells:
        yield f"# {cell.id}"
        url = f"http://{HOST}:{PORT}"
        yield runtime.line(cell_command(session, model, cell.load, url, directory.cell(cell)))
