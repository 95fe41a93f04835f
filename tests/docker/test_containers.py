"""Real containers: what they may do, how they end, and that none is left."""

from __future__ import annotations

import dataclasses
import os
import re
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness.errors import EngineError, HostError, ImageError
from harness.host.rdma import RdmaChoice
from harness.runtime.base import Command
from harness.runtime.docker_engine import connect
from harness.runtime.running_container import RunningContainer
from harness.suite.recipe import Container
from tests.docker.conftest import BASE, Workshop, import_base
from tests.docker.daemon import Daemon
from tests.runtime.test_container import DEVICE

pytestmark = [
    pytest.mark.docker,
    # After a daemon dies, the SDK leaves its sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

WAIT = 60.0

# Linux's numbers (capability.h) of Docker's default set, and of the three that DeepInfer is given.
DEFAULT = (0, 1, 3, 4, 5, 6, 7, 8, 10, 13, 18, 27, 29, 31)
IPC_LOCK, SYS_PTRACE, SYS_NICE = 14, 19, 23


def mask(*numbers: int) -> int:
    return sum(1 << number for number in numbers)


def output(running: RunningContainer) -> list[str]:
    """Wait for a container's end and return its lines without their times."""
    try:
        assert running.wait(WAIT, lambda: None) is not None
    finally:
        running.stop(grace=1)
    return [line.split(" ", 1)[1] for line in running.log.read_text().splitlines()]


def effective(lines: list[str]) -> int:
    found = re.search(r"^CapEff:\s*([0-9a-f]+)$", "\n".join(lines), re.MULTILINE)
    assert found
    return int(found[1], 16)


def test_engine_gets_the_named_capabilities_and_no_other(workshop: Workshop) -> None:
    granted = Container(user="root", capabilities=("IPC_LOCK", "SYS_PTRACE", "SYS_NICE"))
    lines = output(workshop.start("cat /proc/self/status", container=granted))
    assert effective(lines) == mask(*DEFAULT, IPC_LOCK, SYS_PTRACE, SYS_NICE)


def test_engine_without_a_grant_gets_dockers_defaults(workshop: Workshop) -> None:
    assert effective(output(workshop.start("cat /proc/self/status"))) == mask(*DEFAULT)


def test_client_gets_no_capability_and_no_way_to_one(workshop: Workshop) -> None:
    lines = output(workshop.start("cat /proc/self/status; id -u", role="client"))
    assert effective(lines) == 0
    assert any(re.fullmatch(r"NoNewPrivs:\s*1", line) for line in lines)
    assert lines[-1] == str(os.getuid())


def test_device_nodes_are_passed_one_by_one(workshop: Workshop, tmp_path: Path) -> None:
    """Made with mknod, with the numbers of /dev/null: there is no RDMA driver to test with."""
    folder = Path("/dev/infiniband")
    made = [folder / name for name in ("rdma_cm", "uverbs7", "uverbs8")]
    assert not folder.exists(), "this machine has RDMA devices of its own"
    folder.mkdir()
    try:
        for path in made:
            os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))
        device = dataclasses.replace(DEVICE, name="mlx5_7", uverbs="uverbs7")
        chosen = RdmaChoice(chosen=(device,), left_out=())
        runtime = dataclasses.replace(workshop.runtime(), rdma=chosen)
        script = "ls /dev/infiniband; echo x > /dev/infiniband/uverbs7; env"
        lines = output(workshop.start(script, runtime, container=Container(rdma=True)))
        assert lines[:2] == ["rdma_cm", "uverbs7"]
        assert "NCCL_IB_HCA==mlx5_7:1" in lines
    finally:
        for path in made:
            path.unlink(missing_ok=True)
        folder.rmdir()


def test_limits_at_or_below_the_machines_are_set(workshop: Workshop) -> None:
    granted = Container(ulimits={"nofile": 1234}, shm_gib=1)
    lines = output(workshop.start("ulimit -n; stat -f -c '%b %S' /dev/shm", container=granted))
    assert lines[0] == "1234"
    blocks, size = map(int, lines[1].split())
    assert blocks * size == 2**30


def test_what_is_read_cannot_be_written(workshop: Workshop, tmp_path: Path) -> None:
    read, written = tmp_path / "read", tmp_path / "written"
    read.mkdir()
    script = f"touch {read}/x || echo refused; touch {written}/y"
    assert "refused" in output(workshop.start(script, reads=(read,), writes=(written,)))
    assert (written / "y").exists()
    assert not (read / "x").exists()


def test_the_token_is_nowhere(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    output(workshop.start("env; cat /proc/1/environ /proc/1/cmdline | tr '\\0' '\\n'"))
    kept = [path for path in workshop.folder.rglob("*") if path.is_file()]
    assert kept
    assert not any(b"hf_secret" in path.read_bytes() for path in kept)


def test_exit_code_and_output(workshop: Workshop) -> None:
    running = workshop.start("echo one; echo two >&2; exit 7")
    assert running.wait(WAIT, lambda: None) == 7
    running.stop(grace=1)
    assert {line.split(" ")[1] for line in workshop.log.read_text().splitlines()} == {"one", "two"}


def test_container_that_the_kernel_ends_for_want_of_memory_says_so(workshop: Workshop) -> None:
    fill = "x=$(cat /dev/zero | tr '\\0' y); echo survived"
    running = workshop.start(f"echo up; until test -e /tmp/go; do sleep 0.1; done; {fill}")
    try:
        wait_for(workshop, "up")
        (container,) = workshop.containers()
        limit(workshop, container, "16m")
        workshop.daemon.docker("exec", container, "touch", "/tmp/go")
        assert running.wait(WAIT, lambda: None) == 137
    finally:
        running.stop(grace=1)
    assert "the container ran out of memory (OOMKilled, exit 137)" in workshop.log.read_text()
    assert "survived" not in workshop.log.read_text()


def test_container_that_is_killed_from_outside_is_not_said_to_lack_memory(
    workshop: Workshop,
) -> None:
    running = workshop.start("echo up; while true; do sleep 1; done")
    try:
        wait_for(workshop, "up")
        workshop.daemon.docker("kill", "--signal", "KILL", *workshop.containers())
        assert running.wait(WAIT, lambda: None) == 137
    finally:
        running.stop(grace=1)
    assert "killed from outside (exit 137)" in workshop.log.read_text()
    assert "OOMKilled" not in workshop.log.read_text()


def limit(workshop: Workshop, container: str, memory: str) -> None:
    """Limit the memory of a running container, swap included."""
    sizes = ("--memory", memory, "--memory-swap", memory)
    done = workshop.daemon.docker("update", *sizes, container, check=False)
    if done.returncode != 0:
        pytest.skip(f"no memory limit on this kernel: {done.stderr.decode().strip()}")


def wait_for(workshop: Workshop, text: str) -> None:
    deadline = time.monotonic() + WAIT
    while not workshop.log.exists() or text not in workshop.log.read_text():
        assert time.monotonic() < deadline, "the container printed nothing"
        time.sleep(0.05)


def test_ended_container_listens_on_nothing(workshop: Workshop) -> None:
    running = workshop.start("exit 3")
    try:
        assert running.wait(WAIT, lambda: None) == 3
        assert running.listens_on(80) is False
    finally:
        running.stop(grace=1)


def test_stop_asks_first(workshop: Workshop) -> None:
    running = workshop.start(
        "trap 'echo asked; exit 0' TERM; echo up; while true; do sleep 0.1; done"
    )
    wait_for(workshop, "up")
    running.stop(grace=20)
    assert "asked" in workshop.log.read_text()


def test_keep_leaves_the_container_for_a_look(workshop: Workshop) -> None:
    output(workshop.start("echo done", workshop.runtime(keep=True)))
    (left,) = workshop.containers()
    assert b"done" in workshop.daemon.docker("logs", left).stdout
    workshop.daemon.docker("rm", left)


def test_taken_name_is_not_used_again(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    workshop.daemon.docker("create", "--name", "taken", BASE, "sh")
    try:
        names = iter(["taken", "taken", "free-at-last"])
        monkeypatch.setattr("harness.runtime.docker.new_name", lambda role: next(names))
        assert output(workshop.start("echo ran")) == ["ran"]
        monkeypatch.setattr("harness.runtime.docker.new_name", lambda role: "taken")
        with pytest.raises(ImageError, match="three names for the server container were all taken"):
            workshop.start("echo ran")
    finally:
        workshop.daemon.docker("rm", "taken")


def test_program_that_is_not_there(workshop: Workshop) -> None:
    runtime = workshop.runtime()
    runtime.prepare("tool")
    wanted = Command(role="server", image="tool", argv=("vllm", "serve"))
    running = runtime.start(wanted, log=workshop.log, owner=workshop.owner)
    assert running.wait(WAIT, lambda: None) == 127
    running.stop(grace=1)
    assert "exec vllm failed: No such file or directory" in workshop.log.read_text()


def test_leftovers_are_found_by_label_and_strangers_left_alone(workshop: Workshop) -> None:
    workshop.start("sleep 600")
    stranger = workshop.daemon.docker("run", "-d", "--network", "none", BASE, "sleep", "600")
    foreign = stranger.stdout.decode().strip()
    try:
        assert workshop.runtime().end_leftovers(workshop.owner) == 1
        running = workshop.daemon.docker("ps", "-q", "--no-trunc").stdout.decode()
        assert foreign in running
    finally:
        workshop.daemon.docker("rm", "-f", foreign)


def test_what_is_kept_outlives_the_ending_of_leftovers(workshop: Workshop) -> None:
    kept = workshop.runtime(keep=True)
    output(workshop.start("echo done", kept))
    (ended,) = workshop.containers()
    workshop.start("sleep 600")
    assert kept.end_leftovers(workshop.owner) == 1
    assert workshop.containers() == [ended]
    assert workshop.runtime().end_leftovers(workshop.owner) == 1
    assert workshop.containers() == []


def test_gpus_without_toolkit(workshop: Workshop) -> None:
    with pytest.raises(ImageError) as caught:
        workshop.start("echo", container=Container(gpus="all"))
    assert "NVIDIA's container toolkit" in caught.value.usually


HELD = """
import sys, time
from pathlib import Path
from tests.docker.conftest import Workshop
from tests.docker.daemon import Daemon
from tests.runtime.test_container import DEVICE
from harness.cli.main import _stop_once
import signal
signal.signal(signal.SIGTERM, _stop_once)
folder, daemon = Path(sys.argv[1]), Daemon(Path(sys.argv[2]))
running = Workshop(folder, daemon).start("echo up; sleep 600")
try:
    running.wait(600, lambda: None)
finally:
    running.stop(grace=1)
"""


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGKILL])
def test_killed_harness_leaves_no_container(workshop: Workshop, sent: signal.Signals) -> None:
    """SIGTERM: it removes them itself. SIGKILL: the next run does, by the label."""
    arguments = [sys.executable, "-c", HELD, str(workshop.folder), str(workshop.daemon.folder)]
    harness = subprocess.Popen(arguments, stderr=subprocess.DEVNULL)
    wait_for(workshop, "up")
    harness.send_signal(sent)
    harness.wait(WAIT)
    if sent == signal.SIGKILL:
        assert len(workshop.containers()) == 1
        workshop.runtime().end_leftovers(workshop.owner)
    assert workshop.containers() == []


def test_daemon_that_restarts_under_a_container(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = Daemon.short()
    own.start()
    try:
        monkeypatch.setenv("DOCKER_HOST", own.host)
        import_base(own)
        workshop = Workshop(tmp_path / "work", own)
        workshop.folder.mkdir()
        running = workshop.start("echo up; sleep 600")
        wait_for(workshop, "up")
        own.stop()
        with pytest.raises(EngineError, match="daemon stopped answering") as caught:
            running.wait(WAIT, lambda: None)
        assert "finished cells are kept" in caught.value.next_step
        own.start()
        workshop.runtime().end_leftovers(workshop.owner)
        assert workshop.containers() == []
        assert output(workshop.start("echo again"))[-1] == "again"
    finally:
        own.remove()


def test_no_daemon(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nobody.sock")
    with pytest.raises(HostError, match="no Docker engine answers") as caught:
        connect()
    assert caught.value.exit_code == 3


def test_container_that_somebody_removes_was_killed(workshop: Workshop) -> None:
    running = workshop.start("echo up; sleep 600")
    wait_for(workshop, "up")
    (container,) = workshop.containers()
    workshop.daemon.docker("rm", "--force", container)
    assert running.wait(WAIT, lambda: None) == 137
    running.stop(grace=1)
    assert "from outside" in workshop.log.read_text().splitlines()[-1]
