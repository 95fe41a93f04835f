"""Ready means our own process answers with our model; a stranger on the port does not count."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from harness.clock import SystemClock
from harness.engines.base import flags
from harness.engines.client import ClientModel
from harness.engines.registry import served
from harness.engines.server import HOST, RunningServer
from harness.errors import EngineError
from harness.process import Owner
from harness.runtime.local import LocalRuntime
from tests.conftest import Kit

MODEL = ClientModel(name="tiny-llama", folder="/models/tiny-llama")


class Stranger(BaseHTTPRequestHandler):
    """Someone else's healthy server that serves a model of the same name."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"data": [{"id": MODEL.name}], "version": "1"}).encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def stranger() -> Iterator[ThreadingHTTPServer]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Stranger) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def server_on(kit: Kit, port: int) -> RunningServer:
    plan = kit.plan()
    clock = SystemClock()
    owner = Owner("test-server", kit.folder / "processes.jsonl", clock)
    runtime = LocalRuntime(
        images=kit.site.images,
        cache=kit.site.cache,
        owner=owner,
        clock=clock,
        progress=kit.progress,
    )
    return RunningServer(
        engine=served(plan.sessions[0]),
        runtime=runtime,
        command=served(plan.sessions[0]).command(plan.sessions[0], MODEL, HOST, port),
        model_name=MODEL.name,
        port=port,
        log=kit.folder / "server.log",
        owner=owner,
        clock=clock,
        limits=plan.limits,
    )


def test_port_taken_by_a_healthy_stranger(kit: Kit, stranger: ThreadingHTTPServer) -> None:
    server = server_on(kit, stranger.server_port)
    with pytest.raises(EngineError, match="Address already in use") as caught:
        server.up(lambda: None)
    assert f"another program took port {stranger.server_port}" in caught.value.usually
    server.down()


def test_command_that_failed_can_be_pasted(kit: Kit) -> None:
    kit.fault(serve="dies-loading")
    server = server_on(kit, 1)
    with pytest.raises(EngineError) as caught:
        server.up(lambda: None)
    server.down()
    assert "ValueError: no such setting" in caught.value.what
    assert "vllm serve /models/tiny-llama --served-model-name tiny-llama" in caught.value.next_step
    rendered = caught.value.render()
    assert rendered.startswith("error:   the server stopped while loading")
    assert "\nusually: " in rendered
    assert "\nnext:    " in rendered


def test_engine_sees_nothing_of_the_users_shell(
    kit: Kit, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("VLLM_ATTENTION_BACKEND", "surprise")
    monkeypatch.setenv("HF_TOKEN", "secret")
    server = server_on(kit, 1)
    assert isinstance(server.runtime, LocalRuntime)
    env = server.runtime._env(server.command)
    assert "VLLM_ATTENTION_BACKEND" not in env
    assert "HF_TOKEN" not in env
    assert env["HF_HUB_OFFLINE"] == "1"


def test_settings_become_arguments() -> None:
    assert flags({"--a": True, "--b": 8192, "--c": {"x": [1, 2]}, "--d": [6, 12], "--e": 0.92}) == (
        *("--a", "--b", "8192", "--c", '{"x":[1,2]}', "--d", "6", "12", "--e", "0.92"),
    )
