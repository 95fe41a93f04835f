"""A real engine, a tiny base image made from busybox, and the kit's runtime on both."""

from __future__ import annotations

import gc
import io
import shutil
import tarfile
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml as pyyaml
from docker import DockerClient

from harness.clock import SystemClock
from harness.host.rdma import RdmaChoice
from harness.process import Owner
from harness.runtime import docker as docker_runtime
from harness.runtime import docker_engine
from harness.runtime.base import Command
from harness.runtime.docker import DockerRuntime
from harness.runtime.docker_engine import connect
from harness.runtime.docker_images import ImageStore
from harness.runtime.images import Images
from harness.runtime.running_container import RunningContainer
from tests.conftest import QuietProgress
from tests.docker.daemon import Daemon

BASE = "b300-repro-test/busybox:1"
BUSYBOX = Path("/bin/busybox")
APPLETS = ("sh", "cat", "echo", "env", "grep", "head", "id", "ls", "sleep", "stat", "touch", "tr")

DOCKERFILE = """\
ARG BASE
FROM ${BASE}
RUN echo built > /built
"""


def rootfs() -> bytes:
    """Return a tar of the smallest system that has a shell."""
    assert BUSYBOX.exists(), "apt-get install busybox-static"
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        tar.add(BUSYBOX, "bin/busybox")
        for applet in APPLETS:
            link = tarfile.TarInfo(f"bin/{applet}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(link)
        for folder in ("tmp", "dev", "proc", "sys", "etc"):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777
            tar.addfile(entry)
        users = b"root:x:0:0:root:/:/bin/sh\n"
        passwd = tarfile.TarInfo("etc/passwd")
        passwd.size = len(users)
        tar.addfile(passwd, io.BytesIO(users))
    return stream.getvalue()


@pytest.fixture(autouse=True)
def _dropped_sockets_are_no_defect() -> Iterator[None]:
    """Collect what the Docker SDK drops, unclosed, where a daemon goes away under a request."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture(scope="session")
def daemon() -> Iterator[Daemon]:
    """One daemon for all tests that do not stop it."""
    assert shutil.which("dockerd"), "apt-get install docker.io"
    made = Daemon.short()
    made.start()
    try:
        import_base(made)
        yield made
    finally:
        made.remove()


def import_base(daemon: Daemon) -> None:
    """Make the base image of the tests."""
    path = daemon.folder / "rootfs.tar"
    path.write_bytes(rootfs())
    daemon.docker("import", str(path), BASE)


@dataclass
class Workshop:
    """The runtime with a lock of its own, in a folder of its own."""

    folder: Path
    daemon: Daemon
    progress: QuietProgress = field(default_factory=QuietProgress)
    dockerfile: str = DOCKERFILE
    base: Mapping[str, str] = field(default_factory=lambda: {"name": "busybox", "tag": "1"})
    replaced: Mapping[str, str] = field(default_factory=lambda: {"base": BASE})

    @property
    def images(self) -> Images:
        image = self.folder / "docker" / "tool"
        image.mkdir(parents=True, exist_ok=True)
        (image / "Dockerfile").write_text(self.dockerfile)
        lock = {
            "schema_version": 1,
            "bases": {"base": {**self.base, "evidence": "a test", "date": "2026-11-30"}},
            "images": {"tool": {"base": "base", "folder": "tool"}, "plain": {"base": "base"}},
        }
        (image.parent / "images.lock.yaml").write_text(pyyaml.safe_dump(lock))
        return Images(image.parent, self.replaced)

    @property
    def owner(self) -> Owner:
        return Owner(str(self.folder), self.folder / "processes.jsonl", SystemClock())

    def runtime(self, **options: object) -> DockerRuntime:
        return DockerRuntime(
            images=self.images,
            cache=self.folder / "cache",
            owner=self.owner,
            clock=SystemClock(),
            progress=self.progress,
            rdma=RdmaChoice(chosen=(), left_out=()),
            **options,  # type: ignore[arg-type]
        )

    @property
    def store(self) -> ImageStore:
        return ImageStore(
            connect(), self.images, self.folder / "cache", self.owner, SystemClock(), self.progress
        )

    @property
    def log(self) -> Path:
        return self.folder / "out" / "log"

    def start(
        self, script: str, runtime: DockerRuntime | None = None, **command: object
    ) -> RunningContainer:
        runtime = runtime or self.runtime()
        runtime.prepare("tool")
        plain: dict[str, object] = {"role": "server", "image": "tool", **command}
        made = Command(argv=("sh", "-c", script), **plain)  # type: ignore[arg-type]
        return runtime.start(made, log=self.log, owner=self.owner)

    def containers(self) -> list[str]:
        """Return the ids of this folder's containers, running or not."""
        label = f"label=b300-repro.run={self.folder}"
        return self.daemon.docker("ps", "-aq", "--filter", label).stdout.decode().split()


@pytest.fixture
def workshop(daemon: Daemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workshop]:
    """The kit's runtime on the shared daemon; afterwards, none of its containers is left."""
    monkeypatch.setenv("DOCKER_HOST", daemon.host)
    made = Workshop(tmp_path, daemon)
    yield made
    assert made.containers() == []


@pytest.fixture(autouse=True)
def _connections_are_closed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Close what the kit leaves open until its process ends."""
    made: list[DockerClient] = []

    def connect() -> DockerClient:
        made.append(docker_engine.connect())
        return made[-1]

    monkeypatch.setattr(docker_runtime, "connect", connect)
    monkeypatch.setattr("tests.docker.conftest.connect", connect)
    yield
    for client in made:
        client.close()
