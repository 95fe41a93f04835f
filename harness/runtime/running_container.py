"""A started container: its output, its end, and its removal."""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from harness.clock import Clock
from harness.errors import EngineError, ImageError
from harness.process import Tick
from harness.runtime.docker_engine import engine_errors, lost
from harness.stamped_log import StampedLog

if TYPE_CHECKING:
    from docker.models.containers import Container

POLL_SECONDS = 0.1
FOLLOW_SECONDS = 30.0
"""How long a container's last output may take to arrive after the container has exited."""
KILLED = 137
"""128 + SIGKILL."""

LISTENS = """
import glob, os, sys
port = f"{int(sys.argv[1]):04X}"
inodes = set()
for table in ("/proc/net/tcp", "/proc/net/tcp6"):
    with open(table) as lines:
        for fields in map(str.split, lines):
            if fields[3] == "0A" and fields[1].rpartition(":")[2] == port:
                inodes.add(f"socket:[{fields[9]}]")
def target(path):
    try:
        return os.readlink(path)
    except OSError:
        return ""
sys.exit(not any(target(path) in inodes for path in glob.glob("/proc/[0-9]*/fd/*")))
"""
"""Run inside a container: whether one of its processes listens on a port of the network it shares
with the host. State 0A is LISTEN; the columns are those of proc_net_tcp(5)."""


def _is_gone(error: ImageError) -> bool:
    """Return whether the daemon refused because it no longer knows the container."""
    from docker.errors import NotFound

    return isinstance(error.__cause__, NotFound)


class RunningContainer:
    """A container whose output goes to a log, each line stamped with its time of arrival."""

    def __init__(self, container: Container, log: Path, clock: Clock, *, keep: bool) -> None:
        self.log = log
        self._container = container
        self._clock = clock
        self._keep = keep
        self._code: int | None = None
        self._failure: EngineError | None = None
        self._output = StampedLog(log, clock)
        self._stopping = False
        self._started = ""
        self._thread: threading.Thread | None = None

    def follow(self) -> None:
        """Begin to copy its output and to wait for its end."""
        with engine_errors("inspect a container"):
            self._container.reload()
        self._started = str(self._container.attrs["State"]["StartedAt"])
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def identity(self) -> str:
        return f"container {self._container.short_id} started {self._started}"

    def poll(self) -> int | None:
        if self._thread is not None and self._thread.is_alive():
            return None
        if self._failure is not None:
            raise self._failure
        return self._code

    def wait(self, timeout: float, tick: Tick) -> int | None:
        deadline = self._clock.monotonic() + timeout
        while self.poll() is None and self._clock.monotonic() < deadline:
            tick()
            assert self._thread is not None
            self._thread.join(POLL_SECONDS)
        code = self.poll()
        if code is not None:
            self._output.raise_failed_write()
        return code

    def listens_on(self, port: int) -> bool:
        from docker.errors import APIError

        command = ["python3", "-c", LISTENS, str(port)]
        # A container that has just exited cannot answer: `poll` reports its exit.
        with engine_errors("list a container's sockets"), contextlib.suppress(APIError):
            return bool(self._container.exec_run(command).exit_code == 0)
        return False

    def stop(self, grace: float) -> None:
        """End it within ``grace`` seconds, and remove it unless it is to be kept."""
        from docker.errors import NotFound

        self._stopping = True
        with engine_errors("stop a container"), contextlib.suppress(NotFound):
            self._container.stop(timeout=int(grace))
        if self._thread is not None:
            self._thread.join(FOLLOW_SECONDS)
        if not self._keep:
            with engine_errors("remove a container"), contextlib.suppress(NotFound):
                self._container.remove(force=True, v=True)

    def _follow(self) -> None:
        """Copy output until it ends, then take the exit code."""
        try:
            with engine_errors("follow a container"):
                self._output.copy(self._container.logs(stream=True, follow=True))
                self._code = self._exit_code()
        except EngineError as error:
            self._failure = error
        except ImageError as error:
            if _is_gone(error):
                self._output.copy([b"removed from outside while running: docker rm --force"])
                self._code = KILLED
            else:
                self._failure = lost("follow a container")
                self._failure.__cause__ = error

    def _exit_code(self) -> int:
        """Return the exit code; if the container was killed, write to the log by whom."""
        code = int(self._container.wait()["StatusCode"])
        self._container.reload()
        if self._container.attrs["State"].get("OOMKilled"):
            self._output.copy([b"killed: the container ran out of memory (OOMKilled, exit 137)"])
        elif code == KILLED and not self._stopping:
            self._output.copy([b"killed from outside (exit 137): by hand, or out of memory"])
        return code
