"""A runtime that runs commands at once, within the test's process: for hundreds of crashes."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from http.server import ThreadingHTTPServer
from pathlib import Path

from pydantic import JsonValue

from harness.process import Owner, Tick
from harness.runner.site import Site
from harness.runtime.base import Command
from tests.resources import fake_engine


class FixedClock:
    """A clock that stands still unless something waits, so that two reports can be equal."""

    def __init__(self) -> None:
        self.waited = 0.0

    def now(self) -> datetime:
        return datetime(2026, 11, 30, tzinfo=UTC)

    def monotonic(self) -> float:
        return self.waited

    def sleep(self, seconds: float) -> None:
        self.waited += seconds


class Done:
    """A command that has ended."""

    def __init__(self, code: int, log: Path) -> None:
        self.log = log
        self._code = code

    def poll(self) -> int | None:
        return self._code

    def wait(self, timeout: float, tick: Tick) -> int | None:
        tick()
        return self._code

    def stop(self, grace: float) -> None:
        pass

    def identity(self) -> str:
        return "in-process"

    def listens_on(self, port: int) -> bool:
        return False


class Serving(Done):
    """The made-up server, in a thread."""

    def __init__(self, server: ThreadingHTTPServer, log: Path) -> None:
        super().__init__(0, log)
        self._server: ThreadingHTTPServer | None = server
        self._thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        self._thread.start()

    def poll(self) -> int | None:
        return None if self._server else 0

    def stop(self, grace: float) -> None:
        if self._server:
            self._server.shutdown()
            self._thread.join()
            self._server.server_close()
            self._server = None

    def listens_on(self, port: int) -> bool:
        return self._server is not None and self._server.server_port == port


class InProcessRuntime:
    """Runs `resources/fake_engine.py` without starting a process."""

    name = "local"

    def __init__(self) -> None:
        self.started: list[Command] = []

    def __call__(self, site: Site, **_: object) -> InProcessRuntime:
        """Take the place of its own factory in the registry of runtimes."""
        return self

    def prepare(self, image: str) -> Mapping[str, JsonValue]:
        return {"image": image}

    def preparation(self, image: str) -> list[str]:
        return []

    def line(self, command: Command) -> str:
        return " ".join(command.argv)

    def folders(self, command: Command) -> list[Path]:
        return []

    def stop_line(self, command: Command) -> str:
        return "true"

    def with_rdma(self, choice: object) -> InProcessRuntime:
        return self

    def is_privileged(self, command: Command) -> bool:
        return False

    def end_leftovers(self, owner: Owner) -> int:
        return 0

    def start(self, command: Command, *, log: Path, owner: Owner) -> Done:
        log.parent.mkdir(parents=True, exist_ok=True)
        log.touch()
        argv = list(command.argv)
        if argv[:2] == ["vllm", "serve"]:
            name = fake_engine.option(argv, "--served-model-name")
            port = int(fake_engine.option(argv, "--port"))
            return Serving(fake_engine.http_server(name, port), log)
        return Done(fake_engine.run(argv), log)
