"""Ports of the ranks on one machine."""

from __future__ import annotations

import socket

DEEPINFER_PORT_SHIFT = 50
"""DeepInfer listens on MASTER_PORT - 50 (deepinfer 0.1.0, utils.py)."""


def free_port() -> int:
    """Return a TCP port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
