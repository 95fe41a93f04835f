"""Processes are started, identified, logged and ended; strangers are left alone."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from harness.clock import SystemClock
from harness.errors import ImageError
from harness.files import append_line
from harness.process import Identity, Owner, Process, shell_line

SLEEP = "import time; print('up', flush=True); time.sleep(60)"
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + SLEEP
FAMILY = (
    "import subprocess, sys, time; "
    "c = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'], "
    "start_new_session={own}, env={env}); print('child', c.pid, flush=True); time.sleep(60)"
)


@pytest.fixture
def owner(tmp_path: Path) -> Owner:
    return Owner(f"test{tmp_path}", tmp_path / "processes.jsonl", SystemClock())


def start(owner: Owner, code: str, tmp_path: Path) -> Process:
    process = owner.spawn([sys.executable, "-c", code], env={}, log=tmp_path / "log")
    wait_for(lambda: process.log.exists() and process.log.read_text())
    return process


def wait_for(condition: object) -> object:
    clock = SystemClock()
    deadline = clock.monotonic() + 20
    while not (value := condition()):  # type: ignore[operator]
        assert clock.monotonic() < deadline
        clock.sleep(0.02)
    return value


def test_each_line_of_the_log_has_its_time(owner: Owner, tmp_path: Path) -> None:
    code = "import sys; sys.stdout.write('one\\r two\\r\\nthree'); sys.stderr.write('\\nfour\\n')"
    process = owner.spawn([sys.executable, "-uc", code], env={}, log=tmp_path / "log")
    assert process.wait(20, lambda: None) == 0
    lines = process.log.read_text().splitlines()
    pattern = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (.*)")
    assert [pattern.fullmatch(line)[1] for line in lines] == ["one", " two", "three", "four"]  # type: ignore[index]


def test_environment_is_exactly_what_was_given(owner: Owner, tmp_path: Path) -> None:
    code = "import os; print(sorted(k for k in os.environ if k != 'LC_CTYPE'))"
    process = owner.spawn([sys.executable, "-c", code], env={"A": "1"}, log=tmp_path / "log")
    process.wait(20, lambda: None)
    assert "['A', 'B300_REPRO_OWNER']" in process.log.read_text()


@pytest.mark.parametrize("code", [SLEEP, STUBBORN])
def test_stop_ends_it_whether_it_wants_or_not(owner: Owner, tmp_path: Path, code: str) -> None:
    process = start(owner, code, tmp_path)
    process.stop(grace=0.5)
    assert process.poll() in (-signal.SIGTERM, -signal.SIGKILL)


@pytest.mark.parametrize(("own_session", "env"), [(False, "{}"), (True, "None")])
def test_stop_ends_children_by_group_or_by_mark(
    owner: Owner, tmp_path: Path, own_session: bool, env: str
) -> None:
    process = start(owner, FAMILY.format(own=own_session, env=env), tmp_path)
    child = int(process.log.read_text().split()[-1])
    assert Identity.of(child)
    process.stop(grace=5)
    assert Identity.of(child) is None


def test_stop_leaves_strangers_alone(owner: Owner, tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", SLEEP], stdout=subprocess.PIPE) as stranger:
        start(owner, SLEEP, tmp_path).stop(grace=5)
        assert stranger.poll() is None
        stranger.kill()


def test_leftovers_of_a_killed_harness_are_found_and_ended(owner: Owner, tmp_path: Path) -> None:
    # A separate harness, killed while its process and that process's unmarked child run.
    code = (
        "import sys, signal; from pathlib import Path; from harness.clock import SystemClock; "
        "from harness.process import Owner; "
        f"o = Owner({owner.run_id!r}, Path({str(owner.ledger)!r}), SystemClock()); "
        f"o.spawn([sys.executable, '-c', {FAMILY.format(own=False, env='{}')!r}], env={{}}, "
        f"log=Path({str(tmp_path / 'log')!r})); signal.pause()"
    )
    with subprocess.Popen([sys.executable, "-c", code]) as killed:
        line = str(wait_for(lambda: (tmp_path / "log").exists() and (tmp_path / "log").read_text()))
        killed.kill()
    child = int(line.split()[-1])
    assert Identity.of(child)
    assert child in owner.end_leftovers()
    wait_for(lambda: Identity.of(child) is None)
    assert owner.end_leftovers() == []


def test_recycled_pid_is_not_a_leftover(owner: Owner) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SLEEP], stdout=subprocess.PIPE, start_new_session=True
    ) as stranger:
        identity = Identity.of(stranger.pid)
        assert identity
        earlier = {**asdict(identity), "start_ticks": identity.start_ticks - 1}
        append_line(owner.ledger, json.dumps(earlier))
        append_line(owner.ledger, '{"pid": 1, "start_ti')
        assert owner.end_leftovers() == []
        assert stranger.poll() is None
        stranger.kill()


def test_only_our_own_listening_counts(owner: Owner, tmp_path: Path) -> None:
    code = (
        "import socket, time; s = socket.create_server(('127.0.0.1', 0)); "
        "print(s.getsockname()[1], flush=True); time.sleep(60)"
    )
    process = start(owner, code, tmp_path)
    ours = int(process.log.read_text().split()[-1])
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        assert process.listens_on(ours)
        assert not process.listens_on(stranger.getsockname()[1])
    process.stop(grace=5)


def test_missing_program_is_a_message(owner: Owner, tmp_path: Path) -> None:
    with pytest.raises(ImageError, match="cannot start /nowhere/vllm: No such file"):
        owner.spawn(["/nowhere/vllm"], env={}, log=tmp_path / "log")


def test_shell_line_can_be_pasted() -> None:
    line = shell_line(["python", "-c", "import os; print(os.environ['A B'.replace(' ', '')])"],
                      {"AB": "it's $HOME"})  # fmt: skip
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=True)
    assert done.stdout == "it's $HOME\n"
