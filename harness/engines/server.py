"""A server: started, verified to be ours and ready, and stopped without a trace."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests
from pydantic import JsonValue

from harness.clock import Clock
from harness.engines.base import ServedEngine, startup_lines
from harness.errors import EngineError
from harness.process import Owner, Running, Tick, exit_text
from harness.runtime.base import Command, Runtime
from harness.stamped_log import log_tail
from harness.suite.model import Limits

HOST = "127.0.0.1"
POLL_SECONDS = 0.2
ANSWER_SECONDS = 5.0


def free_port() -> int:
    """Return a TCP port that nobody listens on now; the readiness check sees who took it since."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass
class RunningServer:
    """One start of an engine's server. Use `up`, then always `down`."""

    engine: ServedEngine
    runtime: Runtime
    command: Command
    model_name: str
    port: int
    log: Path
    owner: Owner
    clock: Clock
    limits: Limits
    running: Running | None = None

    @property
    def base_url(self) -> str:
        """Root of the endpoint."""
        return f"http://{HOST}:{self.port}"

    def identity(self) -> str:
        """Return what distinguishes this start from any other."""
        return self.running.identity() if self.running else "not started"

    def alive(self) -> bool:
        """Return whether it still runs."""
        return self.running is not None and self.running.poll() is None

    def wait(self, seconds: float, tick: Tick) -> int | None:
        """Wait up to ``seconds`` for its exit; return the exit code, or None if it still runs."""
        return self.running.wait(seconds, tick) if self.running else None

    def up(self, tick: Tick) -> Mapping[str, JsonValue]:
        """Start it and wait until it answers; return what it says about itself.

        Raises:
            EngineError: it did not come up.
        """
        began = self.clock.monotonic()
        self.running = self.runtime.start(self.command, log=self.log, owner=self.owner)
        while not self._ready(self.running):
            waited = self.clock.monotonic() - began
            if (code := self.running.poll()) is not None:
                # The output may still be on its way into the log.
                self.running.stop(grace=0)
                raise EngineError(
                    f"the server stopped while loading ({exit_text(code)}); its last lines:\n"
                    f"{log_tail(self.log)}",
                    usually=self._why_stopped(),
                    next_step=f"read {self.log}; to start it by hand:\n"
                    f"{self.runtime.line(self.command)}",
                )
            if waited > self.limits.engine_start_s:
                raise EngineError(
                    f"the server was not ready after {waited:.0f} s; its last lines:\n"
                    f"{log_tail(self.log)}",
                    usually="it is still compiling or loading, or is waiting for another process",
                    next_step=f"read {self.log}, or raise limits.engine_start_s in the suite",
                )
            tick()
            self.clock.sleep(POLL_SECONDS)
        return {
            "ready_after_s": round(self.clock.monotonic() - began, 1),
            "version": self._version(),
            "identity": self.identity(),
            "port": self.port,
            "said": list(startup_lines(self.engine, self.log)),
        }

    def down(self) -> None:
        """Stop it and verify that nothing is left."""
        if self.running is not None:
            self.running.stop(grace=self.limits.stop_s)

    def _ready(self, running: Running) -> bool:
        """Return whether our own process answers, healthy, with our model and no other.

        Another program on the port could answer 200 as well, so the listening socket must be ours.
        """
        # Finding out whose socket it is means a scan of all processes: not while nobody listens,
        # on the very cores that the engine is starting on.
        if running.poll() is not None or not self._somebody_listens():
            return False
        if not running.listens_on(self.port):
            return False
        endpoints = self.engine.endpoints
        try:
            health = requests.get(f"{self.base_url}{endpoints.health}", timeout=ANSWER_SECONDS)
            served = [item["id"] for item in self._get(endpoints.models)["data"]]
        except (requests.RequestException, ValueError, KeyError, TypeError):
            return False
        if health.status_code == requests.codes.ok and served != [self.model_name]:
            raise EngineError(
                f"the server on port {self.port} serves {served}, not [{self.model_name!r}]",
                usually="the recipe loads another model, or an adapter as well",
                next_step=f"compare with: {self.runtime.line(self.command)}",
            )
        return health.status_code == requests.codes.ok and running.poll() is None

    def _version(self) -> JsonValue:
        """Return what it says its version is; None if it has no such endpoint."""
        path = self.engine.endpoints.version
        version: JsonValue = self._get(path).get("version") if path else None
        return version

    def _get(self, path: str) -> dict[str, Any]:
        answer = requests.get(f"{self.base_url}{path}", timeout=ANSWER_SECONDS)
        answer.raise_for_status()
        body: dict[str, Any] = answer.json()
        return body

    def _somebody_listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex((HOST, self.port)) == 0

    def _why_stopped(self) -> str:
        if self._somebody_listens():
            return f"another program took port {self.port} in the meantime: see ss -ltnp"
        return "a setting that this release refuses, or too little memory; the log says which"
