"""Find out, before any weights are there, with which devices DeepInfer can read its tables."""

from __future__ import annotations

import dataclasses

from harness.engines.gin_probe import (
    MEANINGS,
    PROBE_SECONDS,
    Outcome,
    attempts,
    outcome_of,
    probe_command,
    probe_job,
)
from harness.errors import HostError
from harness.files import make_folder, write_json
from harness.host.rdma import RdmaChoice
from harness.runner.context import Context
from harness.suite.plan import Session

FOLDER = "rdma-probe"
GRACE_SECONDS = 30.0
"""For the container and the interpreter, on top of the probe's own limit."""


def probe_rdma(context: Context, session: Session, choice: RdmaChoice) -> RdmaChoice:
    """Probe until one way works; return the choice with what that way sets.

    Raises:
        HostError: none works; with what each attempt said.
    """
    said: list[str] = []
    last: Outcome = "unknown"
    for attempt in attempts(choice):
        folder = make_folder(context.directory.path / FOLDER / attempt.name)
        job, log = folder / "job.json", folder / "launcher.log"
        write_json(job, probe_job(session, folder))
        log.unlink(missing_ok=True)  # an earlier run's words would be read as this one's
        command = probe_command(session, attempt, job, context.directory.code)
        with context.progress.step(f"probe RDMA, {attempt.name}", expected_s=PROBE_SECONDS / 2):
            running = context.runtime.start(command, log=log, owner=context.owner)
            try:
                code = running.wait(PROBE_SECONDS + GRACE_SECONDS, context.progress.tick)
            finally:
                running.stop(grace=5)
        last = outcome_of(code, log.read_text(encoding="utf-8", errors="replace"))
        context.progress.say(f"  RDMA {attempt.name}: {last}, {MEANINGS[last]}")
        if last == "works":
            return dataclasses.replace(choice, settled=attempt.env)
        said.append(f"{attempt.name}: {last} ({log})")
        if last in ("pidfd-refused", "wrong-rows"):
            break  # no other device changes that
    raise HostError(
        "GPU-initiated networking does not work between this node's ranks:\n" + "\n".join(said),
        usually=MEANINGS[last],
        next_step="read the logs above; the recipes of vLLM need no RDMA: --only vllm; as a last "
        "resort --privileged gives the container everything, and the report says so",
    )
