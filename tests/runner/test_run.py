"""Whole runs with made-up engines: what a user gets, and what is kept when something breaks."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import re
import shutil
from datetime import UTC, datetime

import psutil
import pytest

from harness.errors import EngineError, HostError
from harness.process import OWNER_VARIABLE
from harness.results.collect import collect
from harness.results.run_directory import RunDirectory
from harness.runtime.base import Command
from tests.conftest import FACTS, Kit
from tests.in_process import InProcessRuntime


def statuses(kit: Kit) -> dict[str, str]:
    results = collect(RunDirectory(kit.runs()[-1]))
    return {each.cell.id: each.status for each in results.cells}


def test_a_run_is_measured_recorded_and_reported(kit: Kit) -> None:
    outcome = kit.run()
    assert outcome.results.complete
    assert outcome.directory.record().state == "finished"

    report = outcome.directory.report.read_text()
    assert report.startswith("# A test suite: measured\n")
    assert "**Nothing here was measured.**" in report
    assert "**4 of 4 cells measured**" in report
    # 2 x 8 tokens in 2 s; in-process 2 x 8 tokens within 0.57 s.
    row = "| 128 → 8 | 2 | [8.0](cells/server/128-8-c2/r1/bench.json) | "
    assert row + "[24.8 ms](cells/server/128-8-c2/r1/bench.json) | 0.3× |" in report

    assert (outcome.directory.path / "tables" / "decode.md").read_text().splitlines() == [
        "| In → Out | Concurrent | Output tok/s | TPOT | server ÷ offline |",
        "|---|---|---|---|---|",
        "| 128 → 8 | 2 | 8.0 | 24.8 ms | 0.3× |",
        "| 1K → 1 (prefill) | 1 | 0.5 | — | 0.2× |",
    ]

    targets = re.findall(r"\]\(([^)]+)\)", report)
    assert len(targets) >= 20
    assert [each for each in targets if not (outcome.directory.path / each).exists()] == []

    record = json.loads(outcome.directory.record_file.read_text())
    assert record["schema_version"] == 1
    assert record["plan_hash"] == kit.plan().hash()
    assert record["images"] == {"vllm-cpu": {"image": "vllm-cpu", "torch": []}}
    assert outcome.directory.plan_of(outcome.directory.record()) == kit.plan()


def test_engines_get_the_same_prompts(kit: Kit) -> None:
    plan = kit.plan()
    server, offline = plan.sessions
    assert [cell.requests for cell in server.cells] == [cell.requests for cell in offline.cells]
    assert all(load.seed != cell.requests.seed for load in server.warmups for cell in server.cells)


def test_second_call_only_names_the_report(kit: Kit) -> None:
    first = kit.run()
    kit.progress.lines.clear()
    second = kit.run()
    assert second.already_finished
    assert second.directory == first.directory
    assert kit.progress.lines == []
    assert len(kit.runs()) == 1


def test_fresh_begins_a_new_run(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    kit.run()
    later = datetime(2040, 1, 1, tzinfo=UTC)
    monkeypatch.setattr("harness.clock.SystemClock.now", lambda self: later)
    assert not kit.run(fresh=True).already_finished
    assert len(kit.runs()) == 2


def test_only_narrows_the_run_and_the_table_says_so(kit: Kit) -> None:
    outcome = kit.run(only=("server/128-8-c2",))
    assert [each.cell.id for each in outcome.results.cells] == ["server/128-8-c2/r1"]
    report = outcome.directory.report.read_text()
    assert "— not measured: offline/128-8-c2: not part of this run" in report


def test_repeats_are_cells_of_their_own_with_their_own_prompts(kit: Kit) -> None:
    outcome = kit.run(repeats=2, only=("server/128-8-c2",))
    first, second = outcome.results.cells
    assert (first.cell.repeat, second.cell.repeat) == (1, 2)
    assert first.cell.requests.seed != second.cell.requests.seed
    assert "means of 2 repeats" in outcome.directory.report.read_text()


@pytest.mark.parametrize(
    ("wrong", "status", "reason"),
    [
        ("no-result", "failed", "exited with 0 but wrote no result"),
        ("exit-1", "failed", "the client failed (exit 1): "),
        ("all-failed", "invalid", "0 of 2 requests completed, 2 failed: Connection refused"),
        ("short-output", "invalid", "output lengths 1 x 7, expected 8"),
    ],
)
def test_what_is_no_measurement_never_becomes_a_number(
    kit: Kit, wrong: str, status: str, reason: str
) -> None:
    kit.fault(bench={"cells/server/128-8-c2": wrong})
    outcome = kit.run()
    result = outcome.results.of("server", "128-8-c2")[0]
    assert result.status == status
    assert reason in result.reasons[0]
    assert result.measurement is None
    report = outcome.directory.report.read_text()
    assert "**3 of 4 cells measured**" in report
    assert "| 128 → 8 | 2 | — | — | — |" in report
    assert outcome.directory.record().state == "finished"


@pytest.mark.parametrize(
    ("mode", "message"),
    [
        ("dies-loading", "stopped while loading (exit 3)"),
        ("never-ready", "was not ready after"),
        ("another-model", "serves ['another-model']"),
        ("other-tokens", "tokenizes prompt 0"),
    ],
)
def test_engine_that_does_not_come_up(kit: Kit, mode: str, message: str) -> None:
    patience = 6 if mode == "never-ready" else 40
    kit.suite["limits"] = {"engine_start_s": patience, "wave_s": 40, "stop_s": 2}
    kit.fault(serve=mode)
    with pytest.raises(EngineError, match="server") as caught:
        kit.run()
    assert message in caught.value.what
    assert caught.value.exit_code == 5
    # The other recipe was measured all the same, and the report is there.
    assert statuses(kit)["offline/128-8-c2/r1"] == "measured"
    report = (kit.runs()[0] / "report.md").read_text()
    assert "# A test suite: incomplete" in report
    assert "it was not reached" in report


def test_unfinished_run_is_continued_and_keeps_its_cells(kit: Kit) -> None:
    kit.fault(serve="dies-loading")
    with pytest.raises(EngineError):
        kit.run()
    (run,) = kit.runs()
    kept = run / "cells/offline/128-8-c2/r1"
    before = {path.name: path.read_bytes() for path in kept.iterdir()}
    kit.heal()
    outcome = kit.run()
    assert kit.runs() == [run]
    assert outcome.results.complete
    assert {path.name: path.read_bytes() for path in kept.iterdir()} == before
    assert any("2 of 4 cells are done" in line for line in kit.progress.lines)


def test_server_that_ignores_sigterm_is_gone_all_the_same(kit: Kit) -> None:
    kit.fault(serve="ignores-sigterm")
    assert kit.run().results.complete


def test_prompts_of_other_lengths_stop_the_run(kit: Kit) -> None:
    kit.fault(prompts="drift")
    with pytest.raises(EngineError, match=r"2 prompts of \[129\] tokens, expected 2 of 128"):
        kit.run()


def test_changed_prompts_are_refused_on_resume(kit: Kit) -> None:
    kit.fault(serve="dies-loading")
    with pytest.raises(EngineError):
        kit.run()
    kit.heal()
    prompts = next((kit.runs()[0] / "prompts" / "128-8-c2").glob("*.jsonl"))
    prompts.write_text(prompts.read_text().replace("97", "98"))
    with pytest.raises(EngineError, match="do not match their manifest"):
        kit.run()


def test_full_disk_is_said_before_anything_is_made(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil._ntuple_diskusage(10**9, 10**9, 10**6)
    monkeypatch.setattr("shutil.disk_usage", lambda path: usage)
    with pytest.raises(HostError, match=r"0\.0 GB free") as caught:
        kit.run()
    assert caught.value.exit_code == 3
    assert kit.runs() == []


def test_a_cpu_that_does_not_fit_is_said_before_anything_is_made(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = dataclasses.replace(FACTS, cpu_flags=frozenset({"sse4_2"}))
    monkeypatch.setattr("tests.conftest.FACTS", old)
    with pytest.raises(HostError, match="has no AVX2") as caught:
        kit.run()
    assert caught.value.exit_code == 3
    assert kit.runs() == []


def test_marks_name_the_runs_own_folder(kit: Kit) -> None:
    kit.fault(bench={"cells/server/128-8-c2": "hangs"})
    kit.suite["limits"] = {"engine_start_s": 40, "wave_s": 2, "stop_s": 2}
    seen: set[str] = set()

    def look() -> None:
        for candidate in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                seen.add(candidate.environ().get(OWNER_VARIABLE, ""))

    kit.progress.tick = look  # type: ignore[method-assign]
    directory = kit.run().directory
    assert any(mark.startswith(f"{directory.path}/") for mark in seen)


class Privileges(InProcessRuntime):
    """A runtime that gives the in-process engine a privileged container, as if it needed RDMA."""

    def is_privileged(self, command: Command) -> bool:
        return command.role == "driver"


@pytest.mark.parametrize(("only", "given"), [("server", False), ("offline", True)])
def test_privileged_is_reported_where_an_engine_got_it(kit: Kit, only: str, given: bool) -> None:
    kit.privileged = True
    kit.runtimes = {"local": Privileges()}
    directory = kit.run(only=(only,)).directory
    assert [each.privileged for each in directory.sessions()] == [given]
    assert (f"{only} ran in privileged containers" in directory.report.read_text()) is given


def test_privileged_is_not_reported_of_an_engine_that_was_never_up(kit: Kit) -> None:
    kit.privileged = True
    kit.runtimes = {"local": Privileges()}
    kit.fault(driver={"start": "dies"})
    with pytest.raises(EngineError):
        kit.run()
    assert "privileged containers" not in RunDirectory(kit.runs()[0]).report.read_text()
