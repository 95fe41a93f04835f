"""Print every step of a plan as shell lines, ready to paste."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from harness.engines.gin_probe import AS_CHOSEN, PROBE_SECONDS
from harness.host.rdma import RdmaChoice
from harness.process import shell_line
from harness.runner.planned_run import PlannedRun
from harness.runner.preparation_steps import (
    copy_code,
    make_prompts,
    prepare_images,
    prepare_model,
    probe,
)
from harness.runner.session_steps import session_steps
from harness.runner.steps import (
    CommandStep,
    CopyCode,
    DownloadModel,
    GenerateModel,
    MakePrompts,
    MeasureCell,
    PrepareImage,
    ProbeRdma,
    RunBatch,
    Scrape,
    StartServer,
    Step,
    StopServer,
    WarmUp,
)
from harness.runtime.base import Lines

PORT = 8000
"""Port in printed commands; a run takes a free one."""


def whole_run(run: PlannedRun, *, port: int, own_model: bool) -> Iterator[Step]:
    """Yield the steps, in order, of a run that starts from scratch and in which nothing fails."""
    yield from prepare_images(run)
    yield copy_code(run)
    if run.rdma_session is not None:
        yield probe(run, run.rdma_session, AS_CHOSEN)
    yield prepare_model(run, own=own_model)
    yield make_prompts(run, run.plan.request_sets)
    numbers: dict[str, int] = {}
    for session in run.plan.sessions:
        number = numbers[session.recipe] = numbers.get(session.recipe, 0) + 1
        yield from session_steps(run, session, session.cells, number=number, port=port)


@dataclass(frozen=True, kw_only=True)
class DryRun:
    """Prints a plan's steps with the paths of this host."""

    run: PlannedRun
    lines: Lines
    rdma: RdmaChoice
    own_model: bool
    """Whether the user already has the model."""

    def commands(self) -> Iterator[str]:
        """Yield every command, ready to paste, with comments that say when it runs."""
        for step in whole_run(self.run, port=PORT, own_model=self.own_model):
            if isinstance(step, StartServer | RunBatch):
                yield ""
            yield from self._step(step)
            if isinstance(
                step, PrepareImage | CopyCode | ProbeRdma | GenerateModel | DownloadModel
            ):
                yield ""

    def _step(self, step: Step) -> Iterator[str]:
        match step:
            case PrepareImage():
                yield f"# image {step.image}: once, kept for later runs"
                yield from self.lines.preparation(step.image)
            case CopyCode():
                yield "# the code that runs inside the engines' environments"
                for folder in dict.fromkeys(folder for _, folder in step.copies):
                    yield shell_line(("mkdir", "-p", str(folder)))
                for source, folder in step.copies:
                    flag = ("-r",) if source.is_dir() else ()
                    yield shell_line(("cp", *flag, str(source), str(folder)))
            case GenerateModel():
                yield f"# model {step.name}: generated"
                script = "harness.model.tiny_llama"
                yield shell_line((sys.executable, "-m", script, str(step.folder)))
            case DownloadModel():
                yield from _download(step)
            case StopServer():
                yield f"# {step.session.recipe}: stop the server"
                yield self.lines.stop_line(step.command)
            case _:
                yield from self._comments(step)
                yield from self._command(step)

    def _comments(self, step: CommandStep) -> Iterator[str]:
        match step:
            case ProbeRdma():
                most = f"{PROBE_SECONDS:.0f} s"
                yield f"# RDMA: a probe of at most {most}, before any weights are loaded"
                for reason in self.rdma.reasons():
                    yield f"# RDMA {reason}"
                if not self.rdma.chosen:
                    yield "# no suitable RDMA device on this host: replace uverbsN with the node's"
            case MakePrompts():
                yield "# prompts, before any engine starts"
            case StartServer():
                yield f"# {step.session.recipe}: the server, up for the whole session"
            case WarmUp():
                yield f"# {step.session.recipe}: warm-ups, discarded"
            case RunBatch():
                cells = ", ".join(cell.workload for cell in step.cells)
                yield f"# {step.session.recipe}: warm-ups, then {cells}"
            case _:
                yield f"# {step.title}"

    def _command(self, step: CommandStep) -> Iterator[str]:
        """Yield what a command expects to exist, the command, and what belongs around it."""
        for path, job in step.jobs.items():
            yield from _write(path, job)
        folders = dict.fromkeys([*self.lines.folders(step.command), *step.folders])
        if folders:
            yield shell_line(("mkdir", "-p", *map(str, folders)))
        line = self.lines.line(step.command)
        match step:
            case StartServer():
                yield f"{line} > {shell_line((str(step.log),))} 2>&1 &"
                ready = f"until curl --fail --silent {step.health}; do sleep 5; done"
                yield shell_line(("timeout", f"{step.limit_s:.0f}", "bash", "-c", ready))
            case MeasureCell():
                yield from _curl(step.before)
                yield line
                yield from _curl(step.after)
            case _:
                yield line


def _download(step: DownloadModel) -> Iterator[str]:
    model, folder = step.model, str(step.folder)
    if step.own:
        yield f"# model: your own, {folder}; it is verified and never written to"
        return
    yield f"# model, {model.bytes / 1e9:,.0f} GB"
    yield shell_line(("pip", "install", "huggingface_hub"))
    revision = ("--revision", model.revision) if model.revision else ()
    yield shell_line(("hf", "download", model.repository, *revision, "--local-dir", folder))


def _curl(scrape: Scrape | None) -> Iterator[str]:
    if scrape is not None:
        yield shell_line(("curl", "--silent", "--output", str(scrape.path), scrape.url))


def _write(path: Path, job: JsonValue) -> Iterator[str]:
    """Yield the shell lines that write a job file."""
    yield shell_line(("mkdir", "-p", str(path.parent)))
    yield f"cat > {shell_line((str(path),))} <<'JOB'"
    yield json.dumps(job)
    yield "JOB"
