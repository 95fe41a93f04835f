"""A Docker daemon of the tests' own: its own folders, its own socket, no network of its own."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

START_SECONDS = 60.0


@dataclass
class Daemon:
    """``dockerd`` in a folder; it can be stopped and started again on the same data."""

    folder: Path
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    @classmethod
    def short(cls) -> Daemon:
        """Return one in a folder with a short path: a socket's may have at most 107 characters."""
        return cls(Path(tempfile.mkdtemp(prefix="b300-", dir="/tmp")))

    @property
    def host(self) -> str:
        """The value for DOCKER_HOST."""
        return f"unix://{self.folder}/docker.sock"

    def start(self) -> None:
        """Start it and wait until it answers."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "dockerd.log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    "dockerd",
                    *("--data-root", str(self.folder / "data")),
                    *("--exec-root", str(self.folder / "exec")),
                    *("--pidfile", str(self.folder / "pid")),
                    *("--host", self.host),
                    *("--bridge", "none", "--iptables=false"),
                ],
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        deadline = time.monotonic() + START_SECONDS
        while not self.answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                tail = (self.folder / "dockerd.log").read_text()[-2000:]
                self.stop()
                raise AssertionError(f"dockerd did not start:\n{tail}")
            time.sleep(0.2)

    def answers(self) -> bool:
        """Return whether it serves requests."""
        done = self.docker("info", check=False)
        return done.returncode == 0

    def stop(self) -> None:
        """Stop it cleanly, with its containers."""
        if self._process is not None:
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(30)
            self._process.kill()
            self._process.wait()
            self._process = None

    def remove(self) -> None:
        """Stop it and remove its folder; it leaves its network namespace mounted there."""
        self.stop()
        subprocess.run(["umount", str(self.folder / "exec" / "netns" / "default")], check=False)
        shutil.rmtree(self.folder, ignore_errors=True)

    def docker(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[bytes]:
        """Run the command-line client against it."""
        env = {**os.environ, "DOCKER_HOST": self.host}
        return subprocess.run(["docker", *arguments], env=env, capture_output=True, check=check)
