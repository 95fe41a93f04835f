"""Carry a plan out on this host: images, model, prompts, engine sessions, report."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness.clock import Clock, stamp
from harness.console import Progress
from harness.data import clone
from harness.engines.server import free_port
from harness.errors import EngineError, HostError, KitError
from harness.host.facts import HostReading
from harness.host.fit import check_cpu, check_space
from harness.process import Owner
from harness.report.render import write_report
from harness.results.collect import Results
from harness.results.records import RunRecord, RunState
from harness.results.reference import Reference
from harness.results.run_directory import RunDirectory, newest
from harness.runner.batch_session import BatchSession
from harness.runner.context import Context
from harness.runner.host_lock import Holder, HostLock, hold_host
from harness.runner.preflight import needs_rdma
from harness.runner.prepare import preflight, prepare
from harness.runner.prompts import ensure_prompts
from harness.runner.run_writer import RunWriter, create
from harness.runner.runtimes import RUNTIMES, RuntimeName, Runtimes
from harness.runner.server_session import ServerSession
from harness.runner.session_steps import session_steps
from harness.runner.site import Site
from harness.runner.steps import ServerSteps
from harness.runtime.base import Runtime
from harness.suite.plan import Cell, Plan, Session, plan_to_json

RUN_BYTES = int(1e9)
"""Space that must be free for logs, prompts and results before a run starts."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a run came to."""

    directory: RunDirectory
    results: Results
    already_finished: bool


@dataclass(frozen=True, kw_only=True)
class Reproduction:
    """A plan on this host, with the publication that it is compared with."""

    plan: Plan
    site: Site
    host: HostReading
    reference: Reference | None
    clock: Clock
    progress: Progress
    runtimes: Runtimes = field(default_factory=lambda: RUNTIMES)

    def run(self, *, fresh: bool) -> Outcome:
        """Measure, or go on with the plan's newest run on this host that is not finished.

        Raises:
            KitError: as soon as nothing more can be measured; finished cells stay.
        """
        found = None if fresh else self._newest()
        if found and found.record().state == "finished":
            return Outcome(directory=found, results=write_report(found), already_finished=True)
        if any(self.site.images.image(image).local for image in self.plan.pins):
            check_cpu(self.host.facts)
        check_space(self.site.reports, RUN_BYTES, "a run directory")
        unfit = preflight(self.plan, self.host.facts, self.site, self.progress)
        with hold_host(self.site.lock) as lock:
            if lock.killed is not None:
                self._end_killed(lock, lock.killed)
            directory = found or create(
                self.site.reports, self.plan, self.host.facts.host_id, self.clock.now()
            )
            lock.describe(directory.path, self.plan.runtime)
            try:
                self._open(directory)
                results = self._carry_out(directory, unfit)
            except BaseException:
                # An interrupt can fall between a start and its record, and a daemon can go away
                # before its container is removed.
                lock.leftovers = True
                with contextlib.suppress(KitError):
                    self._end(directory, self.plan.runtime)
                    lock.leftovers = False
                raise
        return Outcome(directory=directory, results=results, already_finished=False)

    def _newest(self) -> RunDirectory | None:
        return newest(self.site.reports, self.plan.hash(), self.host.facts.host_id)

    def _end_killed(self, lock: HostLock, killed: Holder) -> None:
        """End what the last run on this host left behind, in whichever runtime it was.

        Raises:
            HostError: that runtime does not answer, so its engines may still use the host.
        """
        try:
            self._end(RunDirectory(Path(killed.run)), killed.runtime)
        except KitError as error:
            raise HostError(
                f"what the killed run {killed.run} left behind could not be ended: {error.what}",
                usually="Docker was stopped since, and containers can outlive it (live-restore)",
                next_step=f"start Docker again; where it is gone for good: rm {lock.holder_file}",
            ) from error
        lock.leftovers = False

    def _end(self, directory: RunDirectory, runtime: RuntimeName) -> None:
        """End the processes and containers that a run left behind in its runtime."""
        owner = self._owner(directory)
        if ended := self._runtime(runtime, owner).end_leftovers(owner):
            self.progress.say(f"Ended what run {directory.path.name} left behind: {ended} in all.")

    def _runtime(self, name: RuntimeName, owner: Owner) -> Runtime:
        make = self.runtimes[name]
        return make(self.site, owner=owner, clock=self.clock, progress=self.progress)

    def _owner(self, directory: RunDirectory) -> Owner:
        # By its path: in another clone, a run of the same second has the same name.
        return Owner(str(directory.path), directory.ledger, self.clock)

    def _open(self, directory: RunDirectory) -> None:
        """Write the run's own facts, or take up those of the run that goes on."""
        writer = RunWriter(directory)
        if directory.record_file.exists():
            done = sum(directory.finished(cell) for cell in self.plan.cells)
            count = f"{done} of {len(self.plan.cells)} cells are done"
            self.progress.say(f"Going on with {directory.path}: {count}.")
            self._end(directory, self.plan.runtime)
            writer.go_on()
        else:
            writer.begin(self._new_record(directory))
        if self.reference is not None:
            writer.publication(self.reference)

    def _new_record(self, directory: RunDirectory) -> RunRecord:
        facts = self.host.facts
        return RunRecord(
            run=directory.path.name,
            plan_hash=self.plan.hash(),
            plan=plan_to_json(self.plan),
            host=facts.host_id,
            host_summary=facts.summary(),
            gpus=tuple(gpu.name for gpu in facts.gpus),
            kit_version=self.plan.kit_version,
            kit_commit=kit_commit(),
            began=stamp(self.clock.now()),
            state="running",
            privileged=self.site.privileged,
            rdma=tuple(self.site.rdma.reasons())
            if any(map(needs_rdma, self.plan.sessions))
            else (),
        )

    def _carry_out(self, directory: RunDirectory, unfit: HostError | None) -> Results:
        owner = self._owner(directory)
        context = Context(
            plan=self.plan,
            directory=directory,
            runtime=self._runtime(self.plan.runtime, owner),
            owner=owner,
            clock=self.clock,
            progress=self.progress,
            model_folder=self.site.model_folder(self.plan, directory),
        )
        try:
            context.writer.host(self.host)
            _measure(*prepare(context, self.site, unfit))
        except BaseException as error:
            _close(context, "stopped" if isinstance(error, KitError) else "interrupted")
            raise
        return _close(context, "finished")


def _measure(context: Context, unfit: HostError | None) -> None:
    """Run every session that this host can; ``unfit`` is why those that need RDMA cannot.

    Raises:
        KitError: the first reason for which a session did not run to its end.
    """
    context.progress.expect(context.plan.expected_s)
    ensure_prompts(context)
    failures: list[KitError] = []
    for session in context.plan.sessions:
        failure = unfit if unfit and needs_rdma(session) else _run_session(context, session)
        if failure is not None:
            failures.append(failure)
    if failures:
        raise failures[0]


def _run_session(context: Context, session: Session) -> EngineError | None:
    """Measure what is left of a session, with one restart if the engine dies in between.

    An engine that did not even come up is not started again: it would fail the same way, after
    the same wait. The sessions of other recipes still run; the error is returned for the end.
    """
    restarted = False
    while todo := [cell for cell in session.cells if not context.directory.finished(cell)]:
        try:
            _start_session(context, session, todo)
        except EngineError as error:
            reached = context.directory.finished(todo[0])
            if restarted or not reached:
                context.progress.say(error.render())
                return error
            context.progress.say(f"  {error.what.splitlines()[0]} Starting it once more.")
            restarted = True
    return None


def _start_session(context: Context, session: Session, cells: Sequence[Cell]) -> None:
    """Start the engine once and measure ``cells``.

    Raises:
        EngineError: it did not start, or stopped in between.
    """
    number = context.writer.new_session(session.recipe)
    steps = session_steps(context.planned, session, cells, number=number, port=free_port())
    if isinstance(steps, ServerSteps):
        ServerSession(context, steps).run()
    else:
        BatchSession(context, steps).run()


def _close(context: Context, state: RunState) -> Results:
    """Write the run's state and the report of what there is."""
    context.writer.close(state, stamp(context.clock.now()))
    return write_report(context.directory)


def kit_commit() -> str | None:
    """Return the clone's commit, with ``+changes`` where files differ from it; None without one.

    A repository that only contains the kit (its environment lies there, or the kit was unpacked
    into it) says nothing about the kit.
    """
    root = clone()
    if root is None:
        return None

    def git(*arguments: str) -> str | None:
        argv = ["git", "-C", str(root), *arguments]
        try:
            done = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=True)
        except (OSError, subprocess.SubprocessError):
            return None
        return done.stdout.strip()

    top = git("rev-parse", "--show-toplevel")
    if top is None or Path(top).resolve() != root:
        return None
    commit = git("rev-parse", "--short=12", "HEAD")
    return f"{commit}+changes" if commit and git("status", "--porcelain") else commit
