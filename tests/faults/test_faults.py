"""What breaks on real machines: each fault has a message and an exit code, and nothing is lost or
left behind."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
import pytest

from harness.clock import SystemClock
from harness.errors import EngineError, HostError
from harness.files import before_write
from harness.process import Identity
from harness.results.run_directory import RunDirectory
from harness.runner.host_lock import hold_host
from tests.cli.test_main import call, command, environment
from tests.conftest import Kit
from tests.in_process import FixedClock, InProcessRuntime


@pytest.fixture
def quick(kit: Kit) -> Kit:
    kit.runtimes = {"local": InProcessRuntime()}
    kit.clock = FixedClock()
    return kit


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 400 KiB, too small for a whole run."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small tmpfs needs root: sudo nox -s faults")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.mark.parametrize("free_kib", [0, 4, 16, 48, 96])
def test_a_full_disk_stops_the_run_and_space_lets_it_go_on(
    quick: Kit, small_disk: Path, monkeypatch: pytest.MonkeyPatch, free_kib: int
) -> None:
    (quick.folder / "reports").symlink_to(small_disk)
    monkeypatch.setattr("harness.runner.run.RUN_BYTES", 0)
    filler = small_disk / "filler"
    filler.write_bytes(b"0" * (400 - free_kib) * 1024)
    # The disk fills up during one of the kit's own writes, or one of the (fake) engine's.
    with pytest.raises((HostError, OSError)) as caught:
        quick.run()
    if isinstance(caught.value, HostError):
        assert "no space left while writing" in caught.value.what
        assert caught.value.exit_code == 3
    else:
        assert isinstance(caught.value, OSError)
        assert caught.value.errno == errno.ENOSPC
    runs = quick.runs()
    kept = [path for run in runs for path in run.glob("cells/*/*/*/cell.json")]
    whole = {path: json.loads(path.read_text()) for path in kept}
    filler.unlink()
    assert quick.run().results.complete
    assert {path: json.loads(path.read_text()) for path in kept} == whole


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES])
@pytest.mark.parametrize("name", ["run.json", "cell.json", "session.json", "report.md", "job.json"])
def test_each_kind_of_write_can_fail(quick: Kit, number: int, name: str) -> None:
    def fails(step: str, path: Path) -> None:
        if step == "write" and path.name == name:
            raise OSError(number, os.strerror(number))

    with before_write(fails), pytest.raises(HostError) as caught:
        quick.run()
    assert caught.value.exit_code == 3
    assert name in caught.value.what
    full = number in (errno.ENOSPC, errno.EDQUOT)
    assert caught.value.what.startswith("no space left" if full else "cannot write")
    assert quick.run().results.complete


def test_the_reports_folder_is_a_file(quick: Kit) -> None:
    quick.site.reports.write_text("in the way")
    with pytest.raises(HostError, match=r"cannot write .*reports/test-") as caught:
        quick.run()
    assert "ls -ld" in caught.value.next_step


def test_a_file_of_the_run_that_was_damaged_is_named(quick: Kit) -> None:
    outcome = quick.run()
    path = outcome.directory.cell(quick.plan().cells[0]) / "cell.json"
    path.write_text(path.read_text()[:40])
    again = quick.run()
    assert again.results.cells[0].status == "failed"
    assert str(path) in again.results.cells[0].reasons[0]


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ("truncated", "not one result of vllm bench serve: line 1, byte"),
        ("killed", "the client failed (exit -9"),
        ("others-use-it", "the server counted 512 input tokens"),
        ("compiles", "kernels were compiled within the measured window"),
    ],
)
def test_a_cell_that_was_not_measured_says_why(kit: Kit, wrong: str, reason: str) -> None:
    kit.fault(bench={"cells/server/128-8-c2": wrong})
    outcome = kit.run()
    (cell,) = outcome.results.of("server", "128-8-c2")
    assert cell.status != "measured"
    assert reason in cell.reasons[0]
    assert outcome.directory.record().state == "finished"


def test_a_cell_that_was_not_warm_is_measured_once_more(kit: Kit) -> None:
    kit.fault(bench={"cells/server/128-8-c2": "compiles-once"})
    outcome = kit.run()
    assert outcome.results.complete
    warmups = [line for line in kit.progress.lines if line.startswith("server: warm up")]
    assert len(warmups) == 2
    assert any("kernels were compiled while it ran" in line for line in kit.progress.lines)


def test_a_server_that_accepts_and_never_answers(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.engines.server.ANSWER_SECONDS", 0.3)
    kit.suite["limits"] = {"engine_start_s": 4, "wave_s": 20, "stop_s": 2}
    kit.fault(serve="hangs")
    with pytest.raises(EngineError, match="was not ready after"):
        kit.run()


def test_a_client_that_hangs_is_ended_at_its_limit(kit: Kit) -> None:
    kit.suite["limits"] = {"engine_start_s": 40, "wave_s": 4, "stop_s": 2}
    kit.fault(bench={"cells/server/128-8-c2": "hangs"})
    outcome = kit.run()
    (cell,) = outcome.results.of("server", "128-8-c2")
    assert cell.reasons == ("the client did not finish within 4 s",)
    assert outcome.results.of("server", "1k-1-c1")[0].status == "measured"


def test_a_wall_clock_that_steps_back_changes_no_number(quick: Kit) -> None:
    class SteppingBack(FixedClock):
        def now(self) -> datetime:
            self.calls = getattr(self, "calls", 0) + 1
            return datetime(2026, 11, 30, tzinfo=UTC) - timedelta(hours=self.calls)

    before = quick.run().results
    quick.clock = SteppingBack()
    after = quick.run(fresh=True).results
    assert after.complete
    assert [each.measurement for each in after.cells] == [each.measurement for each in before.cells]


def test_two_runs_at_once_are_refused_with_the_first_ones_place(kit: Kit) -> None:
    run = kit.site.reports / "test-first"
    with hold_host(kit.site.lock) as lock:
        lock.describe(run, "local")
        with pytest.raises(HostError) as caught:
            kit.run()
    assert caught.value.exit_code == 3
    assert caught.value.what == f"this host is held by process {os.getpid()}, run {run}"
    assert kit.runs() == []
    assert kit.run().results.complete


def test_kill_9_of_the_harness_then_the_same_command(kit: Kit) -> None:
    kit.fault(bench={"cells/server/1k-1-c1": "hangs"})
    clock = SystemClock()
    with subprocess.Popen(
        command(kit, "run", "test"),
        env=environment(kit),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as running:
        deadline = clock.monotonic() + 40
        while not list(kit.site.reports.glob("*/cells/server/1k-1-c1/r1/hanging")):
            assert clock.monotonic() < deadline
            clock.sleep(0.05)
        children = psutil.Process(running.pid).children(recursive=True)
        running.send_signal(signal.SIGKILL)
    (run,) = kit.runs()
    assert RunDirectory(run).record().state == "running"
    assert [child for child in children if Identity.of(child.pid)]
    first = run / "cells/server/128-8-c2/r1"
    kept = {path.name: path.read_bytes() for path in first.iterdir()}
    kit.heal()
    done = call(kit, "run", "test")
    assert done.returncode == 0, done.stderr
    assert f"Ended what run {run.name} left behind" in done.stderr
    assert {path.name: path.read_bytes() for path in first.iterdir()} == kept
    # Orphans are reaped by whoever adopts them; a zombie no longer runs.
    assert not [child for child in children if Identity.of(child.pid)]
    assert kit.runs() == [run]
    assert (run / "report.md").read_text().startswith("# A test suite: measured")
