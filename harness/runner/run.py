"""Carry out a plan on this host: images, model, prompts, engine sessions, report."""

from __future__ import annotations

import contextlib
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from harness.clock import Clock, stamp
from harness.console import Progress
from harness.data import clone
from harness.errors import HostError, KitError
from harness.host.facts import HostReading
from harness.host.fit import check_cpu, check_space
from harness.process import Owner
from harness.report.render import write_report
from harness.results.collect import Results, collect
from harness.results.records import RunRecord, RunState
from harness.results.reference import Reference
from harness.results.run_directory import RunDirectory, newest
from harness.runner.context import Context
from harness.runner.host_lock import Holder, HostLock, hold_host
from harness.runner.prepare import preflight, prepare
from harness.runner.run_writer import RunWriter, create
from harness.runner.runtimes import RUNTIMES, Runtimes
from harness.runner.sessions import measure
from harness.runner.site import Site
from harness.runtime.base import Runtime, RuntimeName
from harness.suite.plan import Plan, plan_to_json

RUN_BYTES = int(1e9)
"""Space that must be free for logs, prompts and results before a run starts."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The outcome of a run."""

    directory: RunDirectory
    results: Results
    already_finished: bool

    @property
    def remark(self) -> str | None:
        """What a person must know if nothing was left to measure."""
        if not self.already_finished:
            return None
        if self.results.complete:
            return "This plan has already been measured on this host; --fresh measures it again."
        count = f"{self.results.measured} of {len(self.results.cells)} cells were measured"
        return (
            f"This plan has already run on this host: {count}; --retry-failed measures the others "
            "again, --fresh all of them."
        )


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

    def run(self, *, fresh: bool = False, retry_failed: bool = False) -> Outcome:
        """Measure the plan, resuming its newest run on this host if that is not finished.

        A run is finished when every cell has a result, valid or not, or failed while its engine
        stayed up; ``retry_failed`` measures again each of its cells that has no number.

        Raises:
            KitError: as soon as nothing more can be measured; finished cells are kept.
        """
        found = None if fresh else self._newest()
        if found and not self._anything_left(found, retry_failed=retry_failed):
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
                self._open(directory, retry_failed=retry_failed)
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

    def _anything_left(self, found: RunDirectory, *, retry_failed: bool) -> bool:
        """Return whether a run has cells left to measure, or was cut off at its end."""
        if found.record().state != "finished":
            return True
        if retry_failed:
            return not collect(found).complete
        return not all(map(found.finished, self.plan.cells))

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
                next_step=f"start Docker again; if it is gone for good: rm {lock.holder_file}",
            ) from error
        lock.leftovers = False

    def _end(self, directory: RunDirectory, runtime: RuntimeName) -> None:
        """End the processes and containers that a run left behind in its runtime."""
        owner = self._owner(directory)
        if ended := self._runtime(runtime, owner).end_leftovers(owner):
            self.progress.say(f"Ended what run {directory.path.name} left behind ({ended}).")

    def _runtime(self, name: RuntimeName, owner: Owner) -> Runtime:
        make = self.runtimes[name]
        return make(self.site, owner=owner, clock=self.clock, progress=self.progress)

    def _owner(self, directory: RunDirectory) -> Owner:
        # By its path: in another clone, a run begun in the same second has the same name.
        return Owner(str(directory.path), directory.ledger, self.clock)

    def _open(self, directory: RunDirectory, *, retry_failed: bool) -> None:
        """Write the run's own facts, or keep those of the run that resumes."""
        writer = RunWriter(directory)
        if directory.record_file.exists():
            if retry_failed:
                for each in collect(directory).cells:
                    if each.status != "measured":
                        writer.forget(each.cell)
            done = sum(directory.finished(cell) for cell in self.plan.cells)
            count = f"{done} of {len(self.plan.cells)} cells are done"
            self.progress.say(f"Resuming {directory.path}: {count}.")
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
            rdma=tuple(self.site.rdma.reasons())
            if any(session.needs_rdma for session in self.plan.sessions)
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
            measure(*prepare(context, self.site, unfit))
        except BaseException as error:
            _close(context, "stopped" if isinstance(error, KitError) else "interrupted")
            raise
        return _close(context, "finished")


def _close(context: Context, state: RunState) -> Results:
    """Write the run's state, and the report of what was measured so far."""
    context.writer.close(state, stamp(context.clock.now()))
    return write_report(context.directory)


def kit_commit() -> str | None:
    """Return the clone's commit, with ``+changes`` if files differ from it; None without one.

    A repository that merely contains the kit (its environment is in there, or the kit was unpacked
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
