"""All engine sessions of a run: which cells are left, and what happens when an engine dies."""

from __future__ import annotations

from collections.abc import Sequence

from harness.engines.server import free_port
from harness.errors import EngineError, HostError, KitError
from harness.results.run_directory import RunDirectory
from harness.runner.batch_session import BatchSession
from harness.runner.context import Context
from harness.runner.prompts import ensure_prompts
from harness.runner.server_session import ServerSession
from harness.runner.session_steps import session_steps
from harness.runner.steps import ServerSteps
from harness.suite.plan import Cell, Session


def measure(context: Context, unfit: HostError | None) -> None:
    """Run every session that this host can; ``unfit`` is why those that need RDMA cannot.

    Raises:
        KitError: the first reason why a session did not run to its end.
    """
    context.progress.expect(context.plan.expected_s)
    ensure_prompts(context)
    failures: list[KitError] = []
    for session in context.plan.sessions:
        failure = unfit if unfit and session.needs_rdma else _run_session(context, session)
        if failure is not None:
            failures.append(failure)
    if failures:
        raise failures[0]


def _run_session(context: Context, session: Session) -> EngineError | None:
    """Measure what is left of a session, with one restart if the engine dies in between.

    The cell during which it died is tried once more after that restart, last of all: it may be what
    kills the engine. An engine that did not even come up is not started again: it would fail the
    same way, after the same wait. The sessions of other recipes still run; the error is returned,
    to be raised at the end.
    """
    restarted = False
    while todo := _left(context.directory, session):
        number = context.writer.new_session(session.recipe)
        try:
            _start_session(context, session, todo, number)
        except EngineError as error:
            if not _left(context.directory, session):
                context.progress.say(
                    f"  {session.recipe}: {error.summary}; its last cell had already finished."
                )
                return None
            came_up = context.directory.session_file(session.recipe, number).exists()
            if restarted or not came_up:
                context.progress.say(error.render())
                return error
            context.progress.say(f"  {session.recipe}: {error.summary}. Restarting it once.")
            try:
                # A daemon that went away may have left its container running.
                context.runtime.end_leftovers(context.owner)
            except KitError as away:
                context.progress.say(away.render())
                return error
            restarted = True
    return None


def _left(directory: RunDirectory, session: Session) -> list[Cell]:
    """Return the cells still to be measured; those that already lost their engine come last."""
    left = [cell for cell in session.cells if not directory.finished(cell)]
    return sorted(left, key=lambda cell: directory.cell_record(cell) is not None)


def _start_session(context: Context, session: Session, cells: Sequence[Cell], number: int) -> None:
    """Start the engine once and measure ``cells``.

    Raises:
        EngineError: it did not start, or stopped in between.
    """
    steps = session_steps(context.planned, session, cells, number=number, port=free_port())
    if isinstance(steps, ServerSteps):
        ServerSession(context, steps).run()
    else:
        BatchSession(context, steps).run()
