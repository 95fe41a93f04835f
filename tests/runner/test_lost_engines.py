"""An engine that dies under a cell: what is said, what is tried again, what is finished."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.errors import DaemonLostError, EngineError
from harness.process import Owner
from harness.results.collect import collect
from harness.results.records import CellRecord
from harness.results.run_directory import RunDirectory
from harness.runtime.base import Command
from harness.runtime.docker_engine import lost
from tests.conftest import Kit
from tests.in_process import Done, FixedClock, InProcessRuntime

FIRST = "server/128-8-c2/r1"


def statuses(kit: Kit) -> dict[str, str]:
    results = collect(RunDirectory(kit.runs()[-1]))
    return {each.cell.id: each.status for each in results.cells}


def records(kit: Kit) -> dict[str, CellRecord]:
    results = collect(RunDirectory(kit.runs()[-1]))
    return {each.cell.id: each.record for each in results.cells if each.record}


def kept(kit: Kit) -> dict[Path, bytes]:
    """Return every file of every measured cell."""
    directory = RunDirectory(kit.runs()[-1])
    measured = [each.cell for each in collect(directory).cells if each.status == "measured"]
    return {path: path.read_bytes() for cell in measured for path in directory.cell(cell).iterdir()}


def starts(kit: Kit, recipe: str) -> int:
    return len(list(kit.runs()[-1].glob(f"sessions/{recipe}/*")))


def test_a_cell_that_lost_its_engine_is_tried_once_more_after_all_others(kit: Kit) -> None:
    kit.fault(bench={f"cells/{FIRST}": "server-dies-once"})
    assert kit.run().results.complete
    first, other = (records(kit)[cell] for cell in (FIRST, "server/1k-1-c1/r1"))
    assert first.session == other.session == "sessions/server/2"
    assert other.ended <= first.began
    assert any("Restarting it once" in line for line in kit.progress.lines)


def test_only_the_shapes_that_are_left_are_warmed_again(kit: Kit) -> None:
    kit.fault(bench={"cells/server/1k-1-c1": "server-dies-once"})
    outcome = kit.run()
    assert outcome.results.complete
    warmed = [
        sorted(path.stem for path in (outcome.directory.path / folder / "warmup").glob("*.json"))
        for folder in ("sessions/server/1", "sessions/server/2")
    ]
    assert warmed == [["warmup-128-8", "warmup-1k-1"], ["warmup-1k-1"]]


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ("server-dies", "the server stopped (exit 139); its last line: "),
        ("server-killed", "the server stopped (exit -9, SIGKILL: killed by hand, or out of memory"),
        ("server-dies-afterwards", "the server stopped (exit 139); its last line: "),
        ("engine-dies", "the server is still running, but its engine no longer serves; its last"),
    ],
)
def test_a_server_that_dies_each_time_leaves_its_cell_to_the_next_call(
    kit: Kit, monkeypatch: pytest.MonkeyPatch, wrong: str, says: str
) -> None:
    monkeypatch.setattr("harness.runner.server_watch.ENDING_SECONDS", 0.5)
    kit.fault(bench={f"cells/{FIRST}": wrong})
    with pytest.raises(EngineError, match="server") as caught:
        kit.run()
    assert caught.value.exit_code == 5
    assert {cell for cell, status in statuses(kit).items() if status != "measured"} == {FIRST}
    assert starts(kit, "server") == 2
    record = records(kit)[FIRST]
    assert (record.state, record.cause) == ("failed", "engine")
    assert record.reason is not None
    assert record.reason.startswith(says)
    assert len(record.reason.splitlines()) == 1
    assert record.log == "sessions/server/2/server.log"
    assert (kit.runs()[0] / record.log).exists()
    assert RunDirectory(kit.runs()[0]).record().state == "stopped"

    before = kept(kit)
    kit.heal()
    assert kit.run().results.complete
    assert len(kit.runs()) == 1
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ("dies", "the engine stopped after 'wave-started' (exit 1); its last line: "),
        ("killed", "the engine stopped after 'wave-started' (exit -9, SIGKILL"),
        ("hangs", "the engine showed no progress for 4 s after 'wave-started' and was stopped; "),
    ],
)
def test_a_driver_that_dies_each_time_leaves_its_cell_to_the_next_call(
    kit: Kit, wrong: str, says: str
) -> None:
    if wrong == "hangs":
        kit.suite["limits"] = {"engine_start_s": 40, "wave_s": 4, "stop_s": 2}
    kit.fault(driver={"offline/128-8-c2/r1": wrong})
    with pytest.raises(EngineError, match="the engine"):
        kit.run()
    assert [cell for cell, status in statuses(kit).items() if status != "measured"] == [
        "offline/128-8-c2/r1"
    ]
    assert starts(kit, "offline") == 2
    record = records(kit)["offline/128-8-c2/r1"]
    assert record.cause == "engine"
    assert record.reason is not None
    assert record.reason.startswith(says)
    assert record.log == "sessions/offline/2/driver.log"
    kit.heal()
    assert kit.run().results.complete


def test_a_server_that_dies_while_it_is_warmed_is_said_to_have_died(kit: Kit) -> None:
    kit.fault(bench={"sessions/server": "server-dies"})
    with pytest.raises(EngineError, match=r"the server stopped \(exit 139\)"):
        kit.run()
    assert starts(kit, "server") == 1
    assert statuses(kit)[FIRST] == "missing"
    kit.heal()
    assert kit.run().results.complete


def test_a_driver_that_dies_after_its_last_cell_has_measured_it(kit: Kit) -> None:
    kit.fault(driver={"end": "dies"})
    assert kit.run().results.complete
    assert starts(kit, "offline") == 1


@pytest.mark.parametrize(
    ("wrong", "status"),
    [("exit-1", "failed"), ("no-result", "failed"), ("short-output", "invalid")],
)
def test_a_cell_that_failed_with_its_engine_up_is_measured_again_only_when_asked(
    kit: Kit, wrong: str, status: str
) -> None:
    kit.fault(bench={f"cells/{FIRST}": wrong})
    outcome = kit.run()
    assert statuses(kit)[FIRST] == status
    assert outcome.directory.record().state == "finished"
    assert records(kit)[FIRST].cause == ("client" if status == "failed" else None)
    if status == "failed":
        assert records(kit)[FIRST].log == f"cells/{FIRST}/client.log"
    before = kept(kit)
    kit.heal()

    again = kit.run()
    assert again.already_finished
    assert again.remark == (
        "This plan has already run on this host: 3 of 4 cells were measured; --retry-failed "
        "measures the others again, --fresh all of them."
    )
    assert statuses(kit)[FIRST] == status

    retried = kit.run(retry_failed=True)
    assert retried.remark is None
    assert retried.results.complete
    assert retried.directory.record().state == "finished"
    assert retried.directory == outcome.directory
    assert {path: path.read_bytes() for path in before} == before


def test_nothing_is_retried_where_all_is_measured(kit: Kit) -> None:
    kit.run()
    again = kit.run(retry_failed=True)
    assert again.already_finished
    assert again.remark is not None
    assert again.remark.startswith("This plan has already been measured on this host")


def test_a_retry_that_is_cut_off_is_gone_on_with_by_the_plain_command(kit: Kit) -> None:
    kit.fault(bench={f"cells/{FIRST}": "exit-1"})
    kit.run()
    kit.fault(serve="dies-loading")
    with pytest.raises(EngineError):
        kit.run(retry_failed=True)
    kit.heal()
    assert kit.run().results.complete


class LosesItsDaemon(InProcessRuntime):
    """A runtime whose daemon goes away, a few times, during one command of one cell."""

    def __init__(self, role: str, times: int) -> None:
        super().__init__()
        self.role = role
        self.times = times
        self.running: Done | None = None

    def start(self, command: Command, *, log: Path, owner: Owner) -> Done:
        running = super().start(command, log=log, owner=owner)
        self.running = running if command.role in ("server", "driver") else self.running
        hit = "bench" in command.argv and "1k-1-c1" in " ".join(command.argv)
        if self.role == "driver":
            hit = command.role == "driver"
        if self.times and hit:
            self.times -= 1
            raises = _raise(lost("follow a container"))
            if self.role == "client":
                running.wait = raises  # type: ignore[method-assign]
            else:
                assert self.running is not None
                self.running.poll = raises  # type: ignore[method-assign]
        return running


def _raise(error: EngineError) -> Callable[..., int | None]:
    def wait(*_: object) -> int | None:
        raise error

    return wait


@pytest.mark.parametrize("role", ["client", "server"])
def test_a_daemon_that_restarts_during_a_cell_costs_one_engine_start(kit: Kit, role: str) -> None:
    kit.runtimes = {"local": LosesItsDaemon(role, times=1)}
    kit.clock = FixedClock()
    assert kit.run(only=("server",)).results.complete
    assert any("the Docker daemon stopped answering" in line for line in kit.progress.lines)
    assert starts(kit, "server") == 2


@pytest.mark.parametrize("role", ["client", "server"])
def test_a_daemon_that_stays_away_is_named_and_its_cell_left_to_the_next_call(
    kit: Kit, role: str
) -> None:
    kit.runtimes = {"local": LosesItsDaemon(role, times=2)}
    kit.clock = FixedClock()
    with pytest.raises(DaemonLostError, match="daemon stopped answering"):
        kit.run(only=("server",))
    assert statuses(kit) == {FIRST: "measured", "server/1k-1-c1/r1": "failed"}
    record = records(kit)["server/1k-1-c1/r1"]
    assert record.cause == "daemon"
    assert record.reason == (
        "the Docker daemon stopped answering when the kit tried to follow a container"
    )
    assert kit.run(only=("server",)).results.complete
    assert len(kit.runs()) == 1


def test_what_a_lost_daemon_kept_is_ended_before_the_engine_starts_again(kit: Kit) -> None:
    class Sweeps(LosesItsDaemon):
        swept = 0

        def end_leftovers(self, owner: Owner) -> int:
            self.swept += 1
            return 0

    runtime = Sweeps("client", times=1)
    kit.runtimes, kit.clock = {"local": runtime}, FixedClock()
    assert kit.run(only=("server",)).results.complete
    assert runtime.swept == 1
