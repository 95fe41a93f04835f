"""A run carries out exactly the steps that a dry run prints: same commands, same job files."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.process import Owner
from harness.results.run_directory import RunDirectory
from harness.runner.dry_run import DryRun, whole_run
from harness.runner.planned_run import PlannedRun
from harness.runner.steps import CommandStep
from harness.runtime.base import Command
from tests.conftest import Kit
from tests.in_process import Done, FixedClock, InProcessRuntime
from tests.runtime.test_container import PLANNED

PRINTED = Path("/printed")


class Recording(InProcessRuntime):
    """Records each started command with the job files that existed when it started."""

    def __init__(self) -> None:
        super().__init__()
        self.jobs: list[tuple[Path, object]] = []

    def start(self, command: Command, *, log: Path, owner: Owner) -> Done:
        self.started.append(command)
        self.jobs += [
            (path, json.loads(path.read_text())) for path in command.reads if path.suffix == ".json"
        ]
        return super().start(command, log=log, owner=owner)


def normal(value: object, run: Path) -> object:
    """Return plain data with this run's directory and port replaced by fixed ones."""
    text = json.dumps(value, default=str).replace(str(run), "RUN")
    return json.loads(re.sub(r"(127\.0\.0\.1:|--port(?: |\", \"))\d+", r"\1PORT", text))


def plain(command: Command) -> dict[str, object]:
    return {field.name: getattr(command, field.name) for field in dataclasses.fields(command)}


def planned(kit: Kit, run: Path) -> PlannedRun:
    plan, directory = kit.plan(), RunDirectory(run)
    return PlannedRun(
        plan=plan, directory=directory, model_folder=kit.site.model_folder(plan, directory)
    )


def command_steps(run: PlannedRun) -> list[CommandStep]:
    steps = whole_run(run, port=8000, own_model=False)
    return [step for step in steps if isinstance(step, CommandStep)]


def printed_jobs(lines: list[str]) -> Iterator[tuple[Path, object]]:
    for number, line in enumerate(lines):
        if line.startswith("cat > "):
            yield Path(line.split()[2]), json.loads(lines[number + 1])


@pytest.fixture
def recorded(kit: Kit) -> tuple[Kit, Recording, Path]:
    """A whole run, served and in-process, with what it started."""
    runtime = Recording()
    kit.runtimes = {"local": runtime}
    kit.clock = FixedClock()
    outcome = kit.run()
    assert outcome.results.complete
    return kit, runtime, outcome.directory.path


def test_a_run_starts_the_commands_of_its_steps_in_order(
    recorded: tuple[Kit, Recording, Path],
) -> None:
    kit, runtime, run = recorded
    wanted = [normal(plain(step.command), PRINTED) for step in command_steps(planned(kit, PRINTED))]
    assert [normal(plain(command), run) for command in runtime.started] == wanted
    roles = [command.role for command in runtime.started]
    assert roles == ["prompts", "server", "client", "client", "client", "driver"]


def test_a_dry_run_prints_what_a_run_started_and_wrote(
    recorded: tuple[Kit, Recording, Path],
) -> None:
    kit, runtime, run = recorded
    printed = DryRun(
        run=planned(kit, PRINTED), lines=runtime, rdma=PLANNED.rdma, own_model=False
    ).commands()
    lines = [line for text in printed for line in text.splitlines()]

    started = [normal(runtime.line(command), run) for command in runtime.started]
    shown = [str(normal(line, PRINTED)).partition(" > ")[0] for line in lines]
    assert [line for line in shown if line.startswith(("vllm ", "python3 "))] == started

    assert [normal(job, PRINTED) for job in printed_jobs(lines)] == [
        normal(job, run) for job in runtime.jobs
    ]
    assert len(runtime.jobs) == 3

    # The folders and files that the shell makes also exist after the run.
    made = [Path(part) for line in lines if line.startswith("mkdir") for part in line.split()[2:]]
    fetched = [Path(line.split()[3]) for line in lines if line.startswith("curl")]
    assert len(fetched) == 4
    for path in [*made, *fetched]:
        assert (run / path.relative_to(PRINTED)).exists(), path


def test_steps_log_where_the_run_did(recorded: tuple[Kit, Recording, Path]) -> None:
    kit, _, run = recorded
    for step in command_steps(planned(kit, run)):
        assert step.log.exists(), step.title
