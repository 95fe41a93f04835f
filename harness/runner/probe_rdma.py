"""Find out, before any weights are loaded, with which devices DeepInfer can read its tables."""

from __future__ import annotations

import dataclasses

from harness.engines.gin_probe import MEANINGS, Outcome, attempts, outcome_of
from harness.errors import HostError
from harness.host.rdma import RdmaChoice
from harness.runner.context import Context
from harness.runner.preflight import others_run
from harness.runner.preparation_steps import probe
from harness.suite.plan import Session


def probe_rdma(context: Context, session: Session, choice: RdmaChoice) -> RdmaChoice:
    """Probe until one way works; return the choice with what that way sets.

    Raises:
        HostError: none works; with what each attempt said.
    """
    said: list[str] = []
    last: Outcome = "unknown"
    for attempt in attempts(choice):
        step = probe(context.planned, session, attempt)
        log = step.log
        log.unlink(missing_ok=True)  # an earlier run's output would be read as this one's
        with context.progress.step(step.title, expected_s=step.expected_s):
            running = context.start(step)
            try:
                code = running.wait(step.limit_s, context.progress.tick)
            finally:
                running.stop(grace=5)
        last = outcome_of(code, log.read_text(encoding="utf-8", errors="replace"))
        context.progress.say(f"  RDMA {attempt.name}: {last}, {MEANINGS[last]}")
        if last == "works":
            return dataclasses.replace(choice, probed=attempt.env)
        said.append(f"{attempt.name}: {last} ({log})")
        if last in ("pidfd-refused", "wrong-rows"):
            break  # no other device would change that
    raise HostError(
        "GPU-initiated networking does not work between this node's ranks:\n" + "\n".join(said),
        usually=MEANINGS[last],
        next_step=f"read the logs above{others_run(context.plan)}; as a last resort --privileged "
        "gives the container everything, and the report says so",
    )
