"""Print every command of a plan in full, from the same functions that a run uses."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.engines.base import BatchWave
from harness.engines.client import ClientModel
from harness.engines.gin_probe import AS_CHOSEN, PROBE_SECONDS, probe_command, probe_job
from harness.engines.in_process import JOB, launcher_command, launcher_job
from harness.engines.registry import served
from harness.engines.server import HOST
from harness.host.rdma import RdmaChoice
from harness.process import shell_line
from harness.results.records import session_folder
from harness.results.run_directory import METRICS, RunDirectory
from harness.runner.batch_session import batch_waves
from harness.runner.preflight import needs_rdma
from harness.runner.probe_rdma import FOLDER
from harness.runner.prompts import prompts_command, prompts_job
from harness.runner.server_session import cell_command, warmup_command, warmup_job
from harness.runtime.base import Lines
from harness.settings.registry import SETTINGS
from harness.suite.model import HubModel
from harness.suite.plan import Plan, Session

PORT = 8000
"""Port in printed commands; a run takes a free one."""


@dataclass(frozen=True, kw_only=True)
class DryRun:
    """Prints a plan's commands with the paths of this host."""

    plan: Plan
    lines: Lines
    directory: RunDirectory
    model: ClientModel
    rdma: RdmaChoice

    def commands(self) -> Iterator[str]:
        """Yield every command, ready to paste, with comments that say when it runs."""
        plan, code = self.plan, self.directory.code
        for image in plan.pins:
            yield f"# image {image}: once, kept for later runs"
            yield from self.lines.preparation(image)
            yield ""
        yield "# the code that runs inside the engines' environments"
        harness = Path(__file__).resolve().parents[1]
        yield shell_line(("mkdir", "-p", str(code / "harness")))
        yield shell_line(("cp", "-r", str(harness / "inside"), str(code / "harness")))
        yield shell_line(("cp", str(harness / "__init__.py"), str(code / "harness")))
        yield ""
        yield from self._probe()
        yield from self._model()
        yield "# prompts, before any engine starts"
        job = self.directory.path / "prompts" / "job.json"
        root = str(self.directory.path)
        yield from _write(job, prompts_job(self.model, list(plan.request_sets), root))
        yield self.lines.line(prompts_command(plan.prompts_image, self.model, job, code))
        numbers: dict[str, int] = {}
        for session in plan.sessions:
            number = numbers[session.recipe] = numbers.get(session.recipe, 0) + 1
            folder = self.directory.path / session_folder(session.recipe, number)
            yield ""
            http = SETTINGS[session.engine].served
            yield from self._served(session, folder) if http else self._batch(session, folder)

    def _model(self) -> Iterator[str]:
        model = self.plan.model
        if isinstance(model, HubModel):
            yield f"# model, {model.bytes / 1e9:,.0f} GB"
            yield shell_line(("pip", "install", "huggingface_hub"))
            revision = ("--revision", model.revision) if model.revision else ()
            yield shell_line(
                ("hf", "download", model.repository, *revision, "--local-dir", self.model.folder)
            )
        else:
            yield f"# model {model.name}: generated"
            script = "harness.model.tiny_llama"
            yield shell_line((sys.executable, "-m", script, self.model.folder))
        yield ""

    def _served(self, session: Session, folder: Path) -> Iterator[str]:
        url = f"http://{HOST}:{PORT}"
        yield f"# {session.recipe}: the server, up for the whole session"
        server = served(session).command(session, self.model, HOST, PORT)
        yield from self.lines.folders(server)
        yield shell_line(("mkdir", "-p", str(folder)))
        log = shell_line((str(folder / "server.log"),))
        yield f"{self.lines.line(server)} > {log} 2>&1 &"
        ready = f"until curl --fail --silent {url}/health; do sleep 5; done"
        yield shell_line(("timeout", f"{self.plan.limits.engine_start_s:.0f}", "bash", "-c", ready))
        yield f"# {session.recipe}: warm-ups, discarded"
        job = folder / "warmup.json"
        yield from _write(job, warmup_job(session.warmups, self.model, url, folder / "warmup"))
        yield shell_line(("mkdir", "-p", str(folder / "warmup")))
        yield self.lines.line(warmup_command(session, self.model, job, self.directory.code))
        for cell in session.cells:
            yield f"# {cell.id}"
            cell_folder = self.directory.cell(cell)
            yield shell_line(("mkdir", "-p", str(cell_folder)))
            yield self._metrics(url, cell_folder / METRICS[0])
            yield self.lines.line(
                cell_command(session, self.model, cell.requests, url, cell_folder)
            )
            yield self._metrics(url, cell_folder / METRICS[1])
        yield f"# {session.recipe}: stop the server"
        yield self.lines.stop_line(server)

    def _metrics(self, url: str, path: Path) -> str:
        return shell_line(("curl", "--silent", "--output", str(path), f"{url}/metrics"))

    def _batch(self, session: Session, folder: Path) -> Iterator[str]:
        waves: list[BatchWave] = batch_waves(
            session.warmups, session.cells, self.directory.path, folder
        )
        cells = ", ".join(cell.workload for cell in session.cells)
        yield f"# {session.recipe}: warm-ups, then {cells}"
        job = launcher_job(
            session,
            waves,
            self.plan.limits,
            model_folder=self.model.folder,
            run_folder=self.directory.path,
            folder=folder,
        )
        yield from _write(folder / JOB, job)
        command = launcher_command(
            session,
            folder / JOB,
            self.directory.code,
            model_folder=self.model.folder,
            run_folder=self.directory.path,
        )
        yield from self.lines.folders(command)
        yield self.lines.line(command)

    def _probe(self) -> Iterator[str]:
        """Yield the probe of RDMA, where a session needs it, as its first attempt."""
        session = next((each for each in self.plan.sessions if needs_rdma(each)), None)
        if session is None:
            return
        yield f"# RDMA: a probe of at most {PROBE_SECONDS:.0f} s, before any weights are there"
        for reason in self.rdma.reasons():
            yield f"# RDMA {reason}"
        if not self.rdma.chosen:
            yield "# no RDMA device of this host fits: replace uverbsN by those of the node"
        folder = self.directory.path / FOLDER / AS_CHOSEN.name
        job = folder / "job.json"
        yield from _write(job, probe_job(session, folder))
        command = probe_command(session, AS_CHOSEN, job, self.directory.code)
        yield from self.lines.folders(command)
        yield self.lines.line(command)
        yield ""


def _write(path: Path, job: object) -> Iterator[str]:
    """Yield the shell lines that write a job file."""
    yield shell_line(("mkdir", "-p", str(path.parent)))
    yield f"cat > {shell_line((str(path),))} <<'JOB'"
    yield json.dumps(job)
    yield "JOB"
