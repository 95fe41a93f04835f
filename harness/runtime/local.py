"""The runtime ``local``: engines as processes of this host, or of the container we are in."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from pydantic import JsonValue

from harness.clock import Clock
from harness.console import Progress
from harness.host.rdma import RdmaChoice
from harness.process import Owner, Process, shell_line
from harness.runtime.base import OFFLINE, Command
from harness.runtime.environment import Environment, ensure
from harness.runtime.images import Images

PASSED_ON = ("PATH", "HOME", "USER", "LANG", "LC_ALL", "TMPDIR")
"""What engines see of the user's shell: a stray VLLM_* or OMP_* variable would change numbers."""


@dataclass(frozen=True)
class LocalRuntime:
    """Runs commands in virtual environments below ``cache``."""

    images: Images
    cache: Path
    owner: Owner
    clock: Clock
    progress: Progress
    rebuild: bool = False

    name: ClassVar[str] = "local"

    def prepare(self, image: str) -> Mapping[str, JsonValue]:
        return ensure(
            self._environment(image),
            owner=self.owner,
            clock=self.clock,
            progress=self.progress,
            rebuild=self.rebuild,
        )

    def preparation(self, image: str) -> list[str]:
        return self._environment(image).recipe()

    def line(self, command: Command) -> str:
        return shell_line(self._argv(command), {**OFFLINE, **command.env})

    def folders(self, command: Command) -> list[Path]:  # noqa: ARG002 - there are none
        return []

    def stop_line(self, command: Command) -> str:  # noqa: ARG002 - the shell's own job
        return "kill -TERM $! && wait $!"

    def start(self, command: Command, *, log: Path, owner: Owner) -> Process:
        return owner.spawn(self._argv(command), env=self._env(command), log=log)

    def with_rdma(self, choice: RdmaChoice) -> LocalRuntime:  # noqa: ARG002 - none is passed on
        return self

    def is_privileged(self, command: Command) -> bool:  # noqa: ARG002 - there are no containers
        return False

    def end_leftovers(self, owner: Owner) -> int:
        return len(owner.end_leftovers())

    def _environment(self, image: str) -> Environment:
        return Environment(image, self.images, self.cache)

    def _argv(self, command: Command) -> tuple[str, ...]:
        program = self._environment(command.image).programs / command.argv[0]
        return (str(program), *command.argv[1:])

    def _env(self, command: Command) -> dict[str, str]:
        programs = self._environment(command.image).programs
        outer = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        path = os.pathsep.join([str(programs), outer.get("PATH", os.defpath)])
        return {**outer, **OFFLINE, "PATH": path, **command.env}
