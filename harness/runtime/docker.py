"""The runtime ``docker``: every command in a container of its own, least privileged, verified."""

from __future__ import annotations

import functools
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from pydantic import JsonValue

from harness.clock import Clock
from harness.console import Progress
from harness.errors import ImageError
from harness.files import make_folder
from harness.host.rdma import RdmaChoice
from harness.process import Owner
from harness.runtime.base import Command
from harness.runtime.container import RUN_LABEL, Containers
from harness.runtime.docker_engine import connect, engine_errors
from harness.runtime.docker_images import ImageStore
from harness.runtime.docker_lines import DockerLines
from harness.runtime.image_records import ImageRecord
from harness.runtime.images import Images
from harness.runtime.running_container import RunningContainer

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.containers import Container


@dataclass(frozen=True, kw_only=True)
class DockerRuntime:
    """Runs commands in containers of the local Docker engine."""

    images: Images
    cache: Path
    owner: Owner
    clock: Clock
    progress: Progress
    rdma: RdmaChoice
    rebuild: bool = False
    keep: bool = False
    """Keep exited containers for inspection."""
    privileged: bool = False
    """Give ``--privileged`` to engines that need RDMA; a last resort, recorded in the run."""

    name: ClassVar[str] = "docker"

    def prepare(self, image: str) -> Mapping[str, JsonValue]:
        record = self._store.ensure(image, rebuild=self.rebuild)
        return record.model_dump(mode="json")

    def preparation(self, image: str) -> list[str]:
        return self._lines.preparation(image)

    def line(self, command: Command) -> str:
        return self._lines.line(command)

    def folders(self, command: Command) -> list[Path]:
        return self._lines.folders(command)

    def stop_line(self, command: Command) -> str:
        return self._lines.stop_line(command)

    def start(self, command: Command, *, log: Path, owner: Owner) -> RunningContainer:
        record = self._verified(command.image)
        containers = self._containers(owner)
        for folder in self.folders(command):
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
                    usually="the engine's image store was changed at that very moment",
                    next_step=f"python -m harness build {record.image} --rebuild",
                )
            with engine_errors(f"start {command.role}"):
                container.start()
            running.follow()
        except BaseException:
            running.stop(grace=0)
            raise
        return running

    def with_rdma(self, choice: RdmaChoice) -> DockerRuntime:
        return replace(self, rdma=choice)

    def is_privileged(self, command: Command) -> bool:
        return self._containers(None).is_privileged(command)

    def end_leftovers(self, owner: Owner) -> int:
        """End builds, and the containers that carry this run's label; no other is ever touched.

        Exited containers are removed, unless they are to be kept.
        """
        with engine_errors("look for an earlier run's containers"):
            label = f"{RUN_LABEL}={owner.run_id}"
            left = self._docker.containers.list(all=not self.keep, filters={"label": label})
            for container in left:
                container.remove(force=True)
        return len(left) + len(owner.end_leftovers())

    @functools.cached_property
    def _docker(self) -> DockerClient:
        """The engine, connected to on first use: a plan can be printed without one."""
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
                usually="its record in the cache was removed during the run",
                next_step=f"python -m harness build {image}",
            )
        self._store.verify(record)
        return record

    def _create(self, containers: Containers, command: Command, image_id: str) -> Container:
        """Create the container under an unused name."""
        from docker.errors import APIError

        with engine_errors(f"create the {command.role} container"):
            for _ in range(3):
                spec = containers.spec(command, new_name(command.role))
                try:
                    return self._docker.containers.create(image_id, **spec.create_arguments())
                except APIError as error:
                    if error.status_code != 409 or "already in use" not in str(error):
                        raise
        raise ImageError(
            f"three names for the {command.role} container were all taken",
            usually="another program creates containers under the kit's names",
            next_step="docker ps --all --filter name=b300-repro",
        )


def new_name(role: str) -> str:
    """Return a name that no other container has."""
    return f"b300-repro-{role}-{uuid.uuid4().hex[:12]}"
