"""``docker`` command lines as plain data: what a run in containers does, ready to paste."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from harness.process import shell_line
from harness.runtime.base import Command
from harness.runtime.build import build_line
from harness.runtime.container import Containers

STOP_SECONDS = 120


@dataclass(frozen=True)
class DockerLines:
    """Turns commands into ``docker run`` lines with the folders that they need."""

    containers: Containers

    def preparation(self, image: str) -> list[str]:
        """Return the lines that pull or build ``image``."""
        images = self.containers.images
        entry = images.image(image)
        lines = []
        if entry.base not in images.replaced:
            lines.append(shell_line(("docker", "pull", images.base_reference(image))))
        if images.is_built(image):
            lines += build_line(image, images, self.containers.cache)
        return lines

    def line(self, command: Command) -> str:
        """Return ``command`` as one ``docker run`` line."""
        return self.containers.spec(command, self._name(command)).line()

    def folders(self, command: Command) -> list[Path]:
        """Return the recipe's caches and what it writes to: bind mounts need existing sources."""
        return [*(outside for outside, _ in self.containers.caches(command)), *command.writes]

    def stop_line(self, command: Command) -> str:
        """Return the line that ends a container, and waits until its name is free again."""
        name = self._name(command)
        stop = shell_line(("docker", "stop", "--time", str(STOP_SECONDS), name))
        return f"{stop}; while docker container inspect {name} > /dev/null 2>&1; do sleep 1; done"

    def _name(self, command: Command) -> str:
        return f"b300-repro-{command.role}"
