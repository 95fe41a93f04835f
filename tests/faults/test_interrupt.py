"""Ctrl-C and SIGTERM, alone and under nox: nothing is left, and the same command resumes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import psutil
import pytest

from harness.clock import SystemClock
from tests.cli.test_main import ON_FAKES, ROOT, call, command, environment
from tests.conftest import Kit


def under_nox(kit: Kit) -> list[str]:
    """Return a user's nox call, in this environment, on fake engines."""
    kit.write_suite()
    python = kit.folder / "bin" / "python"
    python.parent.mkdir()
    code = ON_FAKES.format(folder=str(kit.folder)).replace("sys.argv[1:]", "sys.argv[3:]")
    python.write_text(f"#!{sys.executable}\n{code}")
    python.chmod(0o755)
    nox = ["-m", "nox", "-f", str(ROOT / "noxfile.py"), "--no-venv", "--no-install"]
    return [sys.executable, *nox, "-s", "reproduce", "--", "test"]


@pytest.mark.parametrize("how", ["SIGINT", "SIGTERM", "Ctrl-C under nox"])
def test_interrupt_keeps_cells_leaves_no_process_and_goes_on(kit: Kit, how: str) -> None:
    kit.fault(bench={"cells/server/1k-1-c1": "hangs"})
    nox = how == "Ctrl-C under nox"
    argv = under_nox(kit) if nox else command(kit, "run", "test")
    env = environment(kit)
    env["PATH"] = os.pathsep.join([str(kit.folder / "bin"), env["PATH"]])
    clock = SystemClock()
    with subprocess.Popen(
        argv,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        cwd=ROOT,
    ) as running:
        deadline = clock.monotonic() + 40
        while not list(kit.site.reports.glob("*/cells/server/1k-1-c1/r1/hanging")):
            assert clock.monotonic() < deadline
            assert running.poll() is None
            clock.sleep(0.05)
        children = psutil.Process(running.pid).children(recursive=True)
        assert len(children) >= 2
        # A terminal sends Ctrl-C to its whole foreground group.
        os.killpg(running.pid, signal.SIGTERM if how == "SIGTERM" else signal.SIGINT)
        output, _ = running.communicate(timeout=40)
    # nox says 1 if its child is gone before nox itself sees the signal; the child's own exit code
    # says what happened.
    assert running.returncode == 130 or (nox and "failed with exit code 130" in output)
    assert "interrupted: finished cells are kept" in output
    assert not [child for child in children if child.is_running()]
    assert not (kit.folder / "b300-repro.holder.json").exists()
    (run,) = kit.runs()
    assert json.loads((run / "run.json").read_text())["state"] == "interrupted"
    kept = (run / "cells/server/128-8-c2/r1/cell.json").read_bytes()
    kit.heal()
    done = call(kit, "run", "test")
    assert done.returncode == 0, done.stderr
    assert "1 of 4 cells are done" in done.stderr
    assert (run / "cells/server/128-8-c2/r1/cell.json").read_bytes() == kept
