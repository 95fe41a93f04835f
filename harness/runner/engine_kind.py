"""What the runner asks about a session's engine; nothing else here tells engines apart."""

from __future__ import annotations

from harness.suite.plan import Session


def is_server(session: Session) -> bool:
    """Return whether the engine is loaded over HTTP; the others get one job for all their cells."""
    return session.engine == "vllm-server"


def compiles_at_start(session: Session) -> bool:
    """Return whether the engine compiles kernels for this very GPU when it starts."""
    return session.engine == "deepinfer"
