"""``docker`` command lines as plain data: what a run in containers would type.

Only planning: this version prints these lines and does not run them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from harness.process import shell_line
from harness.runtime.base import Command
from harness.runtime.images import image_of, load_images, run_reference

OFFLINE = {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}

STOP_SECONDS = 120

RDMA_DEVICES = ("/dev/infiniband/rdma_cm", "/dev/infiniband/uverbs0")
"""Placeholder in printed lines: which uverbs devices are passed is decided on the host."""


@dataclass(frozen=True)
class DockerLines:
    """Turns commands into ``docker run`` lines with the folders that they need."""

    images: Path
    cache: Path
    run: Path
    model: Path

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
            if not (context / "Dockerfile").exists():
                lines.append(f"# {context}/Dockerfile is not part of this version")
            argv = ("docker", "build", "--tag", tag, "--network", "host", str(context))
            lines.append(shell_line(argv, {"DOCKER_BUILDKIT": "1"}))
        return lines

    def line(self, command: Command) -> str:
        """Return ``command`` as one ``docker run`` line."""
        program, *arguments = command.argv
        argv = [
            *("docker", "run", "--rm", "--init", "--name", self._name(command)),
            *self._given(command),
            *self._mounts(command),
        ]
        for name, value in sorted({**OFFLINE, **command.env}.items()):
            argv += ["--env", f"{name}={value}"]
        argv += ["--entrypoint", program, run_reference(command.image, self.images), *arguments]
        return shell_line(argv)

    def stop_line(self, command: Command) -> str:
        """Return the line that ends a container, with time for an orderly end."""
        return shell_line(("docker", "stop", "--time", str(STOP_SECONDS), self._name(command)))

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
        for device in RDMA_DEVICES if granted.rdma else ():
            argv += ["--device", device]
        return argv

    def _mounts(self, command: Command) -> list[str]:
        """Return the mounts: model read-only, the run's folder, the recipe's caches writable."""
        mounts = [f"type=bind,source={self.model},target={self.model},readonly"]
        mounts.append(f"type=bind,source={self.run},target={self.run}")
        for inside in command.container.caches if command.container else ():
            outside = self.cache / "jit" / command.image / Path(inside).name
            mounts.append(f"type=bind,source={outside},target={inside}")
        return [part for mount in mounts for part in ("--mount", mount)]
