"""``docker`` command lines as plain data: what a run in containers would type.

Only planning: this version prints these lines and does not run them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from harness.host.rdma import RdmaChoice
from harness.process import shell_line
from harness.runtime.base import OFFLINE, Command
from harness.runtime.images import image_of, load_images, run_reference

STOP_SECONDS = 120

UNKNOWN_NODES = ("/dev/infiniband/rdma_cm", "/dev/infiniband/uverbsN")
"""Printed where this host has no fitting device: a plan is often read on another machine."""


@dataclass(frozen=True)
class DockerLines:
    """Turns commands into ``docker run`` lines with the folders that they need."""

    images: Path
    cache: Path
    run: Path
    model: Path
    rdma: RdmaChoice

    def preparation(self, image: str) -> list[str]:
        """Return the lines that pull or build ``image``."""
        entry = image_of(image, self.images)
        lines = []
        if entry.base is not None:
            base = load_images(self.images).bases[entry.base].reference
            lines.append(shell_line(("docker", "pull", base)))
        if entry.base is None or entry.sources:
            tag = run_reference(image, self.images)
            context = self.images / image
            lacking = "" if (context / "Dockerfile").exists() else "# not in this version: "
            argv = ("docker", "build", "--tag", tag, "--network", "host", str(context))
            lines.append(lacking + shell_line(argv, {"DOCKER_BUILDKIT": "1"}))
        return lines

    def line(self, command: Command) -> str:
        """Return ``command`` as one ``docker run`` line."""
        program, *arguments = command.argv
        argv = [
            *("docker", "run", "--rm", "--init", "--name", self._name(command)),
            *self._given(command),
            *self._mounts(command),
        ]
        network = self.rdma.env if command.container and command.container.rdma else {}
        for name, value in sorted({**OFFLINE, **network, **command.env}.items()):
            argv += ["--env", f"{name}={value}"]
        argv += ["--entrypoint", program, run_reference(command.image, self.images), *arguments]
        return shell_line(argv)

    def folders(self, command: Command) -> list[str]:
        """Return the line that makes the recipe's caches: a bind mount needs its source."""
        folders = [str(outside) for outside, _ in self._caches(command)]
        return [shell_line(("mkdir", "-p", *folders))] if folders else []

    def stop_line(self, command: Command) -> str:
        """Return the line that ends a container, and waits until its name is free again."""
        name = self._name(command)
        stop = shell_line(("docker", "stop", "--time", str(STOP_SECONDS), name))
        return f"{stop}; while docker container inspect {name} > /dev/null 2>&1; do sleep 1; done"

    def _name(self, command: Command) -> str:
        return f"b300-repro-{command.role}"

    def _given(self, command: Command) -> list[str]:
        """Return what the recipe grants; client and prompts get the network and nothing else."""
        granted = command.container
        if granted is None:
            return ["--network", "host"]
        argv: list[str] = []
        for flag, value in (
            ("--gpus", granted.gpus),
            ("--ipc", granted.ipc),
            ("--network", granted.network),
            ("--user", granted.user),
        ):
            argv += [flag, value] if value else []
        for name, limit in granted.ulimits.items():
            argv += ["--ulimit", f"{name}={limit}:{limit}"]
        for capability in granted.capabilities:
            argv += ["--cap-add", capability]
        for device in (self.rdma.nodes or UNKNOWN_NODES) if granted.rdma else ():
            argv += ["--device", device]
        return argv

    def _caches(self, command: Command) -> list[tuple[Path, str]]:
        """Return host folder and container folder of each writable cache."""
        inside = command.container.caches if command.container else ()
        return [(self.cache / "jit" / command.image / Path(each).name, each) for each in inside]

    def _mounts(self, command: Command) -> list[str]:
        """Return the mounts: model read-only, the run's folder, the recipe's caches writable."""
        mounts = [f"type=bind,source={self.model},target={self.model},readonly"]
        mounts.append(f"type=bind,source={self.run},target={self.run}")
        for outside, inside in self._caches(command):
            mounts.append(f"type=bind,source={outside},target={inside}")
        return [part for mount in mounts for part in ("--mount", mount)]
