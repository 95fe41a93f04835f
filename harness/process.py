"""Start, identify, log, stop and reap processes: servers, clients and drivers alike.

Each process is started as the leader of its own session and process group, so that a Ctrl-C in
the terminal reaches the kit only, and with an environment variable that names its owner. Processes
to end are found by these marks, never by name: a process we did not start is never signalled.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shlex
import signal
import subprocess
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Protocol

import psutil

from harness.clock import Clock
from harness.errors import EngineError, ImageError
from harness.files import append_line, make_folder
from harness.stamped_log import StampedLog

OWNER_VARIABLE = "B300_REPRO_OWNER"
"""Environment variable of every process that we start: ``<run id>/<spawn id>``."""

POLL_SECONDS = 0.1
KILL_SECONDS = 10.0
"""How long the kernel gets to remove a process after SIGKILL before we call it stuck."""

Tick = Callable[[], None]
"""Called between polls of a wait: progress is shown there, and a caller may raise to end it."""


@dataclass(frozen=True)
class Identity:
    """A process, identified beyond doubt: a pid is reused, but never with the same start time.

    Not psutil's own: its create_time depends on the wall clock, and an identity is recorded by one
    run and read by a later one; in between, the clock can be set.
    """

    pid: int
    start_ticks: int
    boot_id: str

    @classmethod
    def of(cls, pid: int) -> Identity | None:
        """Return the identity of a living process, or None where there is none."""
        try:
            stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return None
        # Field 2 is the program's name and may hold blanks; proc_pid_stat(5): starttime is 22.
        fields = stat.rpartition(")")[2].split()
        if fields[0] == "Z":
            return None
        return cls(pid, int(fields[19]), boot_id())

    def alive(self) -> bool:
        """Return whether this very process still runs (a zombie does not)."""
        return Identity.of(self.pid) == self


@functools.cache
def boot_id() -> str:
    """Return the kernel's id of this boot."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


class Running(Protocol):
    """A started process, wherever it runs: on this host or in a container."""

    log: Path

    def poll(self) -> int | None:
        """Return the exit code, or None while it runs."""
        ...

    def wait(self, timeout: float, tick: Tick) -> int | None:
        """Wait up to ``timeout`` seconds; return the exit code, or None if it still runs."""
        ...

    def stop(self, grace: float) -> None:
        """Ask it to end, kill it after ``grace`` seconds, and verify that nothing is left."""
        ...

    def identity(self) -> str:
        """Return what distinguishes this start from any other, for the records."""
        ...

    def listens_on(self, port: int) -> bool:
        """Return whether it, and not another program, listens on the TCP ``port``."""
        ...


class Process:
    """A process of this host, with a log in which every line has the time it arrived."""

    def __init__(
        self, popen: subprocess.Popen[bytes], spawn_id: str, log: Path, clock: Clock
    ) -> None:
        self.log = log
        self._popen = popen
        self._spawn_id = spawn_id
        self._clock = clock
        self._identity = Identity.of(popen.pid)
        self._output = StampedLog(log, clock)
        assert popen.stdout is not None
        self._pump = threading.Thread(target=self._copy_output, args=(popen.stdout,), daemon=True)
        self._pump.start()

    def identity(self) -> str:
        started = self._identity.start_ticks if self._identity else "gone"
        return f"pid {self._popen.pid} started {started} boot {boot_id()[:8]}"

    def poll(self) -> int | None:
        return self._popen.poll()

    def wait(self, timeout: float, tick: Tick) -> int | None:
        deadline = self._clock.monotonic() + timeout
        while not self._ended_within(POLL_SECONDS) and self._clock.monotonic() < deadline:
            tick()
        code = self._popen.poll()
        if code is not None:
            self._finish_log()
        return code

    def listens_on(self, port: int) -> bool:
        for member in self._members():
            with contextlib.suppress(psutil.Error):
                for connection in member.net_connections(kind="tcp"):
                    if connection.status == psutil.CONN_LISTEN and connection.laddr.port == port:
                        return True
        return False

    def stop(self, grace: float) -> None:
        if self._popen.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                self._popen.terminate()
            deadline = self._clock.monotonic() + grace
            while not self._ended_within(POLL_SECONDS) and self._clock.monotonic() < deadline:
                pass
        deadline = self._clock.monotonic() + KILL_SECONDS
        while left := self._members():
            if self._clock.monotonic() > deadline:
                pids = ", ".join(str(member.pid) for member in left)
                raise EngineError(
                    f"processes {pids} are still running {KILL_SECONDS:.0f} s after SIGKILL",
                    usually="they are waiting for a device or file system that does not respond",
                    next_step=f"inspect: ps -o pid,stat,wchan,cmd -p {pids.replace(' ', '')}",
                )
            for member in left:
                with contextlib.suppress(psutil.Error):
                    member.kill()
            if self._ended_within(POLL_SECONDS):  # reaped; its children may need longer
                self._clock.sleep(POLL_SECONDS / 10)
        self._popen.wait(KILL_SECONDS)
        self._finish_log()

    def _ended_within(self, seconds: float) -> bool:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._popen.wait(seconds)
        return self._popen.returncode is not None

    def _members(self) -> list[psutil.Process]:
        """Return the living processes of this spawn: its group, and whoever carries its mark.

        The group alone would miss a child that created its own session; the mark alone, one that
        overwrote its environment, as setproctitle does for vLLM's engine processes.
        """
        mark = f"/{self._spawn_id}"
        return _living(lambda group, owner: group == self._popen.pid or owner.endswith(mark))

    def _copy_output(self, stream: IO[bytes]) -> None:
        with stream:
            self._output.copy(iter(lambda: os.read(stream.fileno(), 1 << 16), b""))

    def _finish_log(self) -> None:
        self._pump.join(timeout=KILL_SECONDS)
        self._output.raise_failed_write()


@dataclass(frozen=True)
class Owner:
    """On whose behalf processes are started, and where their identities are kept.

    ``ledger`` has one JSON line for each start. It is written immediately, so that the next run
    can find what a killed one left behind.
    """

    run_id: str
    ledger: Path
    clock: Clock

    def spawn(self, argv: Sequence[str], *, env: Mapping[str, str], log: Path) -> Process:
        """Start ``argv`` with exactly ``env`` and our mark; its output goes to ``log``.

        Raises:
            ImageError: the program does not exist or cannot be executed.
        """
        spawn_id = uuid.uuid4().hex
        make_folder(log.parent)
        try:
            popen = subprocess.Popen(
                argv,
                env={**env, OWNER_VARIABLE: f"{self.run_id}/{spawn_id}"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            raise ImageError(
                f"cannot start {argv[0]}: {error.strerror}",
                usually="the engine's environment is incomplete, or was moved after it was built",
                next_step="rebuild it: nox -s reproduce -- --rebuild",
            ) from error
        process = Process(popen, spawn_id, log, self.clock)
        try:
            if identity := Identity.of(popen.pid):
                append_line(self.ledger, json.dumps(asdict(identity)))
        except BaseException:
            process.stop(grace=0)
            raise
        return process

    def end_leftovers(self) -> list[int]:
        """End what an earlier, killed process of this run left behind; return the pids ended."""
        groups, mark = self._groups_of_ledger(), f"{self.run_id}/"
        ended = []
        for left in _living(lambda group, owner: group in groups or owner.startswith(mark)):
            with contextlib.suppress(psutil.Error):
                left.kill()
                ended.append(left.pid)
        return ended

    def _groups_of_ledger(self) -> set[int]:
        """Return the process groups of this boot that are still ours.

        The kernel does not reuse a pid while a group of that number has members. So a group is
        ours if its leader is the recorded process, or is gone.
        """
        groups = set()
        lines = self.ledger.read_text(encoding="utf-8").splitlines() if self.ledger.exists() else []
        for line in lines:
            with contextlib.suppress(ValueError, TypeError):  # a line torn by the kill
                recorded = Identity(**json.loads(line))
                current = Identity.of(recorded.pid)
                if recorded.boot_id == boot_id() and current in (None, recorded):
                    groups.add(recorded.pid)
        return groups


def exit_text(code: int) -> str:
    """Format an exit code for a person; a negative one is the signal that killed the process."""
    if code >= 0:
        return f"exit {code}"
    name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
    why = ": killed by hand, or out of memory" if name == "SIGKILL" else ""
    return f"exit {code}, {name}{why}"


def shell_line(argv: Sequence[str], env: Mapping[str, str] | None = None) -> str:
    """Return one line to paste into a shell: assignments, then the quoted command."""
    assignments = [f"{name}={shlex.quote(value)}" for name, value in sorted((env or {}).items())]
    return " ".join([*assignments, shlex.join(argv)])


def _living(ours: Callable[[int, str], bool]) -> list[psutil.Process]:
    """Return the living processes whose group and owner mark satisfy ``ours``."""
    found = []
    for candidate in psutil.process_iter():
        with contextlib.suppress(ProcessLookupError):
            group = os.getpgid(candidate.pid)
            if ours(group, _owner_of(candidate)) and Identity.of(candidate.pid):
                found.append(candidate)
    return found


def _owner_of(candidate: psutil.Process) -> str:
    try:
        return candidate.environ().get(OWNER_VARIABLE, "")
    except (psutil.Error, OSError):
        return ""
