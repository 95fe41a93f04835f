"""Run one in-process engine as several ranks: start them, keep them in step, merge, end them.

Each rank is a process (`harness.inside.rank`) with its own log. All are told what to do over pipes
and answer with JSON lines, so a wave begins on all of them together, and a rank that dies or hangs
is noticed: DeepInfer's own ranks would wait four hours for it (DEEPINFER_GLOO_TIMEOUT).

Job: ``{"backend": "module:class", "gpu_per_rank": bool, "drive": "generate" | "step", "ranks": N,
"engine": {...}, "model": folder, "folder": session folder, "events": path, "limits": {"start_s",
"wave_s", "stop_s"}, "waves": [{"id", "ids", "output_len", "concurrency", "seed", "result"}]}``.
Times in results are seconds since the wave began.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness.inside.jobs import Events, read_job, write_atomic
from harness.inside.merge import merge
from harness.inside.ports import DEEPINFER_PORT_SHIFT, free_port

POLL_SECONDS = 0.1
TAIL_LINES = 15
TAIL_BYTES = 64 * 1024


class RankError(Exception):
    """A rank failed; ``reason`` says which, when and how, and the message adds its last lines."""

    def __init__(self, reason: str, rank: Rank) -> None:
        super().__init__(f"{reason}; the last lines of {rank.log}:\n{rank.tail()}")
        self.reason = reason
        self.log = rank.log


class Rank:
    """One rank's process, and the pipe on which it answers."""

    def __init__(self, number: int, job: dict[str, Any], env: dict[str, str]) -> None:
        self.number = number
        self.log = Path(job["folder"]) / f"rank-{number}.log"
        orders, self._orders = os.pipe()
        self._answers, answers = os.pipe()
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "harness.inside.rank", sys.argv[1]),
                    *(str(number), str(orders), str(answers)),
                ],
                env=env,
                pass_fds=(orders, answers),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        os.close(orders)
        os.close(answers)

    def tell(self, order: dict[str, Any]) -> None:
        """Send one order; if the rank is gone, its missing answer will tell."""
        with contextlib.suppress(BrokenPipeError):
            os.write(self._orders, (json.dumps(order) + "\n").encode())

    def answer_to(self, inbox: queue.Queue[tuple[int, dict[str, Any]]]) -> None:
        """Put every answer into ``inbox``, until the rank closes its pipe."""
        with os.fdopen(self._answers, encoding="utf-8") as answers:
            for line in answers:
                inbox.put((self.number, json.loads(line)))

    def kill(self) -> None:
        """Kill it and what it started; its pipe closes with it."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        with contextlib.suppress(OSError):
            os.close(self._orders)

    def tail(self) -> str:
        """Return the last lines of its log."""
        with self.log.open("rb") as log:
            log.seek(max(0, self.log.stat().st_size - TAIL_BYTES))
            lines = log.read().decode(errors="replace").splitlines()
        return "\n".join(f"  {line}" for line in lines[-TAIL_LINES:])


class Ranks:
    """All ranks of a job."""

    def __init__(self, job: dict[str, Any]) -> None:
        self._inbox: queue.Queue[tuple[int, dict[str, Any]]] = queue.Queue()
        self._ranks: list[Rank] = []
        port = free_port() + DEEPINFER_PORT_SHIFT
        for number in range(job["ranks"]):
            self._ranks.append(Rank(number, job, rank_environment(job, number, port)))
        for rank in self._ranks:
            threading.Thread(target=rank.answer_to, args=(self._inbox,), daemon=True).start()

    def tell(self, **order: Any) -> None:  # noqa: ANN401 - JSON
        """Send one order to all."""
        for rank in self._ranks:
            rank.tell(order)

    def gather(self, event: str, seconds: float) -> list[dict[str, Any]]:
        """Wait until every rank has answered with ``event``; return the answers by rank.

        Raises:
            RankError: a rank ended, said that it failed, or did not answer in time.
        """
        answers: dict[int, dict[str, Any]] = {}
        deadline = time.monotonic() + seconds
        while len(answers) < len(self._ranks):
            with contextlib.suppress(queue.Empty):
                number, answer = self._inbox.get(timeout=POLL_SECONDS)
                if answer["event"] == "failed":
                    raise self._error(number, f"failed before '{event}': {answer['reason']}")
                answers[number] = answer
                continue
            # Only once the inbox is empty: a rank may end right after its last answer.
            for rank in self._ranks:
                if rank.number not in answers and (code := rank.process.poll()) is not None:
                    raise self._error(rank.number, f"exited with {code} before '{event}'")
            if time.monotonic() > deadline:
                number = next(rank.number for rank in self._ranks if rank.number not in answers)
                missing = len(self._ranks) - len(answers)
                raise self._error(
                    number, f"did not reach '{event}' within {seconds:.0f} s ({missing} ranks)"
                )
        return [answers[rank.number] for rank in self._ranks]

    def _error(self, number: int, what: str) -> RankError:
        return RankError(f"rank {number} {what}", self._ranks[number])

    def end(self, seconds: float) -> None:
        """Give closed ranks ``seconds`` to exit by themselves, then kill all."""
        deadline = time.monotonic() + seconds
        for rank in self._ranks:
            with contextlib.suppress(subprocess.TimeoutExpired):
                rank.process.wait(max(0.0, deadline - time.monotonic()))
        self.kill()

    def kill(self) -> None:
        """Kill all ranks immediately."""
        for rank in self._ranks:
            rank.kill()


def rank_environment(job: dict[str, Any], number: int, port: int) -> dict[str, str]:
    """Return one rank's environment: it must be set before the engine's package is imported."""
    env = dict(os.environ)
    if job["gpu_per_rank"]:
        # Plain integers: the package parses them.
        env |= {
            "CUDA_VISIBLE_DEVICES": str(number),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
        }
    return env


@contextlib.contextmanager
def started(job: dict[str, Any]) -> Iterator[Ranks]:
    """Start all ranks; none is left behind, however the block ends."""
    ranks = Ranks(job)
    try:
        yield ranks
    finally:
        ranks.kill()


def run(job: dict[str, Any], events: Events) -> None:
    """Run the job: one start, then its waves in order, each with one atomic result.

    Raises:
        RankError: a rank failed; all are ended.
    """
    limits = job["limits"]
    events.emit("starting", ranks=job["ranks"])
    with started(job) as ranks:
        infos = ranks.gather("ready", limits["start_s"])
        common = {name: value for name, value in infos[0].items() if name != "event"}
        events.emit("ready", **common, ranks=job["ranks"])
        for wave in job["waves"]:
            ranks.tell(order="arm", wave=wave)
            ranks.gather("armed", limits["wave_s"])
            events.emit("wave-started", wave=wave["id"])
            ranks.tell(order="go")
            parts = ranks.gather("done", limits["wave_s"])
            result = merge(wave, common, job["drive"], parts)
            write_atomic(Path(wave["result"]), json.dumps(result, allow_nan=False) + "\n")
            events.emit("wave-finished", wave=wave["id"], duration_s=result["duration_s"])
        ranks.tell(order="close")
        ranks.gather("closed", limits["stop_s"])
        ranks.end(limits["stop_s"])
    events.emit("finished")


def main() -> None:
    """Run the job that the command line names; exit 1 if a rank failed."""
    # Ends the ranks on the way out.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    job = read_job()
    events = Events(Path(job["events"]))
    try:
        run(job, events)
    except RankError as error:
        events.emit("failed", reason=error.reason, log=str(error.log))
        print(error, flush=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
