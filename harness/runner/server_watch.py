"""Whether a server still serves, checked while something else runs and once that has ended."""

from __future__ import annotations

from dataclasses import dataclass

import requests

from harness.engines.server import RunningServer
from harness.errors import DaemonLostError, EngineStoppedError
from harness.process import Tick, exit_text
from harness.stamped_log import log_tail

HEALTH_SECONDS = 10.0
SERVER_ERROR = 500
"""vLLM answers 503 once its engine is dead."""
ENDING_SECONDS = 10.0
"""How long a server whose engine is dead may take to end by itself, so that its exit is known."""


@dataclass(frozen=True)
class ServerWatch:
    """Watches one start of a server."""

    server: RunningServer
    health: str
    """URL that answers as long as the engine behind it lives."""
    shown: Tick
    """Updates what a person sees."""

    def tick(self) -> None:
        """Check once; called between the polls of a wait.

        Raises:
            EngineStoppedError: the server ended.
            DaemonLostError: its container's daemon went away.
        """
        self.shown()
        if not self.server.alive():
            raise self._stopped(self.server.wait(0, self.shown))

    def death(self) -> EngineStoppedError | DaemonLostError | None:
        """Return how the server died; None if it is alive.

        The process of a server whose engine died lives on for a moment, and its clients fail
        before it is gone.
        """
        try:
            if self.server.alive() and self._serves():
                return None
            return self._stopped(self.server.wait(ENDING_SECONDS, self.shown))
        except DaemonLostError as error:
            return error

    def _serves(self) -> bool:
        try:
            answer = requests.get(self.health, timeout=HEALTH_SECONDS)
        except requests.Timeout:
            return True  # slow is not dead
        except requests.RequestException:
            return False
        return answer.status_code < SERVER_ERROR

    def _stopped(self, code: int | None) -> EngineStoppedError:
        return EngineStoppedError(
            f"the server stopped ({exit_text(code)})"
            if code is not None
            else "the server is still running, but its engine no longer serves",
            log=self.server.log,
            last_lines=log_tail(self.server.log),
            usually="too little memory, or a crash in a kernel of this workload",
            next_step=f"read {self.server.log}",
        )
