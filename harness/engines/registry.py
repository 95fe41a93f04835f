"""All engines, by the names that recipes give them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from harness.engines.base import Engine, InProcessEngine, ServedEngine
from harness.engines.deepinfer import DeepInfer
from harness.engines.vllm_offline import VllmOffline
from harness.engines.vllm_server import VllmServer
from harness.registry import Registry
from harness.settings.registry import SETTINGS
from harness.suite.plan import Session

ENGINES: Registry[Engine] = Registry("engine", [VllmServer(), VllmOffline(), DeepInfer()])


@contextlib.contextmanager
def added(*engines: Engine) -> Iterator[None]:
    """Add ``engines``, so that recipes can name them, for the duration of the block."""
    settings = [engine.settings for engine in engines]
    with SETTINGS.added(*settings), ENGINES.added(*engines):
        yield


def engine_of(session: Session) -> Engine:
    """Return the engine of a planned session."""
    return ENGINES[session.engine]


def served(session: Session) -> ServedEngine:
    """Return the engine of a session that is loaded over HTTP."""
    engine = engine_of(session)
    assert isinstance(engine, ServedEngine), f"{engine.name} has no server"
    return engine


def in_process(session: Session) -> InProcessEngine:
    """Return the engine of a session that is given token ids."""
    engine = engine_of(session)
    assert isinstance(engine, InProcessEngine), f"{engine.name} is not in-process"
    return engine
