"""One container as plain data, and the two forms it takes: a line to paste, a call to the engine.

A container is granted what its recipe names and nothing else. Clients and tools get no capability
at all and run as the user who started the kit, so that their files are this user's.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.host.rdma import RdmaChoice
from harness.process import shell_line
from harness.runtime.base import OFFLINE, Command
from harness.runtime.images import Images
from harness.suite.recipe import Container

RUN_LABEL = "b300-repro.run"
ROLE_LABEL = "b300-repro.role"

UNKNOWN_NODES = ("/dev/infiniband/rdma_cm", "/dev/infiniband/uverbsN")
"""Printed if this host has no suitable device: a plan is often read on another machine."""

GIB = 2**30


@dataclass(frozen=True, kw_only=True)
class Mount:
    """A folder or file of the host inside a container."""

    source: str
    target: str
    writable: bool


@dataclass(frozen=True, kw_only=True)
class ContainerSpec:
    """Everything that decides what a container is and may do."""

    image: str
    name: str
    program: str
    arguments: tuple[str, ...]
    env: Mapping[str, str]
    mounts: tuple[Mount, ...]
    labels: Mapping[str, str]
    granted: Container
    user: str | None
    unprivileged: bool
    """No capability at all, and no way to gain one."""
    devices: tuple[str, ...] = ()
    privileged: bool = False

    def line(self) -> str:
        """Return the ``docker run`` line."""
        argv = ["docker", "run", "--rm", "--init", "--name", self.name, *self._flags()]
        for mount in self.mounts:
            mode = "" if mount.writable else ",readonly"
            argv += ["--mount", f"type=bind,source={mount.source},target={mount.target}{mode}"]
        for name, value in sorted(self.env.items()):
            argv += ["--env", f"{name}={value}"]
        return shell_line([*argv, "--entrypoint", self.program, self.image, *self.arguments])

    def _flags(self) -> Iterator[str]:
        granted = self.granted
        if granted.gpus:
            yield from ("--device" if "=" in granted.gpus else "--gpus", granted.gpus)
        if granted.ipc:
            yield from ("--ipc", granted.ipc)
        if granted.shm_gib:
            yield from ("--shm-size", f"{granted.shm_gib}g")
        # The kit reaches servers over the host's loopback, and RDMA addresses are the host's.
        yield from ("--network", "host")
        if self.user:
            yield from ("--user", self.user)
        for name, limit in granted.ulimits.items():
            yield from ("--ulimit", f"{name}={limit}:{limit}")
        if self.unprivileged:
            yield from ("--cap-drop", "ALL", "--security-opt", "no-new-privileges")
        for capability in granted.capabilities:
            yield from ("--cap-add", capability)
        for device in self.devices:
            yield from ("--device", device)
        if self.privileged:
            yield "--privileged"

    def create_arguments(self) -> dict[str, Any]:
        """Return the keyword arguments of the Docker SDK's ``containers.create``."""
        granted = self.granted
        arguments: dict[str, Any] = {
            "name": self.name,
            "entrypoint": [self.program],
            "command": list(self.arguments),
            "environment": dict(self.env),
            "labels": dict(self.labels),
            "mounts": [
                {
                    "Type": "bind",
                    "Source": mount.source,
                    "Target": mount.target,
                    "ReadOnly": not mount.writable,
                }
                for mount in self.mounts
            ],
            "network_mode": "host",
            "init": True,
            "ulimits": [
                {"Name": name, "Soft": limit, "Hard": limit}
                for name, limit in granted.ulimits.items()
            ],
            "cap_add": list(granted.capabilities),
            "devices": [f"{device}:{device}:rwm" for device in self.devices],
            "privileged": self.privileged,
        }
        if self.unprivileged:
            arguments |= {"cap_drop": ["ALL"], "security_opt": ["no-new-privileges"]}
        if self.user:
            arguments["user"] = self.user
        if granted.ipc:
            arguments["ipc_mode"] = granted.ipc
        if granted.shm_gib:
            arguments["shm_size"] = granted.shm_gib * GIB
        if granted.gpus:
            arguments["device_requests"] = [_gpu_request(granted.gpus)]
        return arguments


def _gpu_request(gpus: str) -> dict[str, Any]:
    """Return what ``--gpus all``, or ``--device`` with a CDI name, asks the engine for."""
    if "=" in gpus:
        return {"Driver": "cdi", "DeviceIDs": [gpus]}
    return {"Driver": "", "Count": -1, "Capabilities": [["gpu"]]}


@dataclass(frozen=True, kw_only=True)
class Containers:
    """Plans the containers of one run."""

    images: Images
    cache: Path
    rdma: RdmaChoice
    privileged: bool = False
    """Whether engines that need RDMA get ``--privileged``: asked for explicitly, and recorded."""
    labels: Mapping[str, str] = field(default_factory=dict)

    def spec(self, command: Command, name: str) -> ContainerSpec:
        """Return the container that runs ``command``."""
        granted = command.container or Container()
        program, *arguments = command.argv
        rdma = granted.rdma
        env = {**OFFLINE, **(self.rdma.env if rdma else {}), **command.env}
        if not command.is_engine:
            # Programs look for a home and a user name; this user has neither inside the image.
            env = {"HOME": "/tmp", "USER": "b300-repro", **env}
        return ContainerSpec(
            image=self.images.run_reference(command.image),
            name=name,
            program=program,
            arguments=tuple(arguments),
            env=env,
            mounts=self._mounts(command),
            labels={**self.labels, ROLE_LABEL: command.role},
            granted=granted,
            user=granted.user if command.is_engine else f"{os.getuid()}:{os.getgid()}",
            unprivileged=not command.is_engine,
            devices=(self.rdma.nodes or UNKNOWN_NODES) if rdma else (),
            privileged=self.is_privileged(command),
        )

    def is_privileged(self, command: Command) -> bool:
        """Return whether ``command`` gets ``--privileged``."""
        return self.privileged and command.container is not None and command.container.rdma

    def caches(self, command: Command) -> list[tuple[Path, str]]:
        """Return host folder and container folder of each writable cache."""
        inside = command.container.caches if command.container else ()
        return [(self.cache / "jit" / command.image / Path(each).name, each) for each in inside]

    def _mounts(self, command: Command) -> tuple[Mount, ...]:
        """Return what is read, then what may be written, each at the same path as outside."""
        read = [
            path
            for path in dict.fromkeys(command.reads)
            if not any(path.is_relative_to(folder) for folder in command.writes)
        ]
        mounts = [
            Mount(source=str(path), target=str(path), writable=writable)
            for paths, writable in ((read, False), (dict.fromkeys(command.writes), True))
            for path in paths
        ]
        for outside, inside in self.caches(command):
            mounts.append(Mount(source=str(outside), target=inside, writable=True))
        return tuple(mounts)
