"""Ranks that die, hang, or drop or cut requests: all ranks end within seconds, with the reason."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

import pytest

from tests.ranks.launched import Launched

FAULTS: list[tuple[dict[str, Any], str]] = [
    (
        {"kind": "dies-loading"},
        "rank 1 failed before 'ready': RuntimeError: NCCL GIN is unavailable",
    ),
    ({"kind": "dies", "step": 5}, "exited with 134"),
    ({"kind": "drops"}, "was dropped"),
    ({"kind": "wrong-length"}, "did not end at their full length"),
]


@pytest.mark.parametrize("drive", ["step", "generate"])
@pytest.mark.parametrize(("fault", "message"), FAULTS, ids=[each["kind"] for each, _ in FAULTS])
def test_fault_ends_all_ranks_with_its_reason(
    launched: Launched, drive: str, fault: dict[str, Any], message: str
) -> None:
    if (drive, fault["kind"]) == ("generate", "drops"):
        message = "LLM.generate returned 3 of 4 requests"
    launched.drive, launched.fault = drive, {"rank": 1, **fault}
    code, output = launched.run()
    assert code == 1
    # A neighbour can be the first to notice a broken peer.
    assert message in output or "Connection closed by peer" in output
    assert launched.living() == []
    assert launched.events()[-1]["event"] == "failed"
    assert not (launched.folder / "cell" / "result.json").exists()
    assert (launched.folder / "session" / "rank-1.log").read_text()


@pytest.mark.parametrize("drive", ["step", "generate"])
def test_rank_that_hangs_is_ended_at_the_limit(launched: Launched, drive: str) -> None:
    launched.drive, launched.wave_s = drive, 2.0
    launched.fault = {"rank": 1, "kind": "hangs", "step": 3}
    code, output = launched.run()
    assert code == 1
    assert "did not reach 'done' within 2 s" in output
    assert launched.living() == []


def wait_until_hanging(launched: Launched) -> None:
    log = launched.folder / "session" / "rank-1.log"
    deadline = time.monotonic() + 30
    while not log.exists() or "never answers" not in log.read_text():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGKILL])
def test_launcher_that_is_ended_takes_its_ranks_along(
    launched: Launched, sent: signal.Signals
) -> None:
    launched.fault = {"rank": 1, "kind": "hangs", "step": 3}
    process = launched.start()
    wait_until_hanging(launched)
    os.kill(process.pid, sent)
    process.communicate(timeout=30)
    deadline = time.monotonic() + 30
    while launched.living():
        assert time.monotonic() < deadline, "ranks outlive the launcher"
        time.sleep(0.02)


def test_faked_routing_is_refused(launched: Launched) -> None:
    launched.env = {"DEEPINFER_FORCE_LOAD_BALANCE": "1"}
    code, output = launched.run()
    assert code == 1
    assert "DEEPINFER_FORCE_LOAD_BALANCE would replace the model's routing" in output
