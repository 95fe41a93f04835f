"""The runtime ``docker``: every command in a container of its own, least privileged, verified."""

from __future__ import annotations

import contextlib
import functools
import threading
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from pydantic import JsonValue

from harness.clock import Clock
from harness.console import Progress
from harness.errors import EngineError, ImageError
from harness.files import make_folder
from harness.host.rdma import RdmaChoice
from harness.process import Owner, Tick
from harness.runtime.base import Command
from harness.runtime.container import RUN_LABEL, Containers
from harness.runtime.docker_engine import connect, engine_errors, lost
from harness.runtime.docker_images import ImageRecord, ImageStore
from harness.runtime.docker_lines import DockerLines
from harness.runtime.images import Images
from harness.stamped_log import StampedLog

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.containers import Container

POLL_SECONDS = 0.1
FOLLOW_SECONDS = 30.0
"""How long a container's last output may take to arrive after its end."""
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
"""Run inside a container: whether a process of it listens on a port of the network it shares with
the host. State 0A is LISTEN; the columns are those of proc_net_tcp(5)."""


@dataclass(frozen=True, kw_only=True)
class DockerRuntime:
    """Runs commands in containers of the local Docker engine."""

    images: Images
    cache: Path
    owner: Owner
    clock: Clock
    progress: Progress
    rdma: RdmaChoice
    reinstall: bool = False
    keep: bool = False
    """Leave ended containers where they are, to look into them."""
    privileged: bool = False
    """Give ``--privileged`` to engines that need RDMA; a last resort, recorded in the run."""

    name: ClassVar[str] = "docker"

    def prepare(self, image: str) -> Mapping[str, JsonValue]:
        record = self._store.ensure(image, anew=self.reinstall)
        return record.model_dump(mode="json")

    def preparation(self, image: str) -> list[str]:
        return self._lines.preparation(image)

    def line(self, command: Command) -> str:
        return self._lines.line(command)

    def folders(self, command: Command) -> list[str]:
        return self._lines.folders(command)

    def stop_line(self, command: Command) -> str:
        return self._lines.stop_line(command)

    def start(self, command: Command, *, log: Path, owner: Owner) -> RunningContainer:
        record = self._verified(command.image)
        containers = self._containers(owner)
        for outside, _ in containers.caches(command):
            make_folder(outside)
        for folder in command.writes:
            make_folder(folder)
        make_folder(log.parent)
        # By id: a tag that moves between the check and this call cannot change what runs.
        container = self._create(containers, command, record.id)
        running = RunningContainer(container, log, self.clock, keep=self.keep)
        try:
            made_from = container.attrs["Image"]
            if made_from != record.id:
                raise ImageError(
                    f"container {container.name} was made from {made_from}, "
                    f"not from the verified {record.id}",
                    usually="the engine's image store was changed at this very moment",
                    next_step=f"python -m harness build {record.image} --anew",
                )
            with engine_errors(f"start {command.role}"):
                container.start()
            running.follow()
        except BaseException:
            running.stop(grace=0)
            raise
        return running

    def end_leftovers(self, owner: Owner) -> int:
        """Remove the containers that carry this run's label; no other is ever touched."""
        with engine_errors("look for containers of an earlier run"):
            label = f"{RUN_LABEL}={owner.run_id}"
            left = self._docker.containers.list(all=True, filters={"label": label})
            for container in left:
                container.remove(force=True)
        return len(left)

    @functools.cached_property
    def _docker(self) -> DockerClient:
        """The engine, connected to at its first use: a plan can be printed without one."""
        return connect()

    @property
    def _store(self) -> ImageStore:
        return ImageStore(
            self._docker, self.images, self.cache, self.owner, self.clock, self.progress
        )

    @property
    def _lines(self) -> DockerLines:
        return DockerLines(self._containers(None))

    def _containers(self, owner: Owner | None) -> Containers:
        return Containers(
            images=self.images,
            cache=self.cache,
            rdma=self.rdma,
            privileged=self.privileged,
            labels={RUN_LABEL: owner.run_id} if owner else {},
        )

    def _verified(self, image: str) -> ImageRecord:
        record = self._store.record(image)
        if record is None:
            raise ImageError(
                f"image {image} was not prepared",
                usually="its record in the cache was removed while the run was going on",
                next_step=f"python -m harness build {image}",
            )
        self._store.verify(record)
        return record

    def _create(self, containers: Containers, command: Command, image_id: str) -> Container:
        """Create the container under a name that nobody has."""
        from docker.errors import APIError

        with engine_errors(f"create the container of {command.role}"):
            for _ in range(3):
                spec = containers.spec(command, new_name(command.role))
                try:
                    return self._docker.containers.create(image_id, **spec.create_arguments())
                except APIError as error:
                    if error.status_code != 409 or "already in use" not in str(error):
                        raise
        raise ImageError(
            f"three names for a container of {command.role} were all taken",
            usually="another program creates containers under the kit's names",
            next_step="docker ps --all --filter name=b300-repro",
        )


def new_name(role: str) -> str:
    """Return a name that no other container has."""
    return f"b300-repro-{role}-{uuid.uuid4().hex[:12]}"


class RunningContainer:
    """A container whose output goes to a log, each line with the time at which it arrived."""

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

    @property
    def container_id(self) -> str:
        """The engine's id of it."""
        return str(self._container.id)

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
        with engine_errors("ask a container for its sockets"):
            asked = self._container.exec_run(["python3", "-c", LISTENS, str(port)])
        return bool(asked.exit_code == 0)

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
        except ImageError as error:  # removed by somebody else: nothing more can be asked
            self._failure = lost("follow a container")
            self._failure.__cause__ = error

    def _exit_code(self) -> int:
        """Return the exit code; write down where the container was killed, and by whom."""
        code = int(self._container.wait()["StatusCode"])
        self._container.reload()
        if self._container.attrs["State"].get("OOMKilled"):
            self._output.copy([b"killed: the container ran out of memory (OOMKilled, exit 137)"])
        elif code == KILLED and not self._stopping:
            self._output.copy([b"killed from outside (exit 137): by hand, or for want of memory"])
        return code
