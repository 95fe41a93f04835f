"""The real client against a server with a known schedule: TTFT and TPOT come out as sent."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from harness.engines.client import ClientModel, bench_argv
from harness.results.bench import read_bench_file
from harness.results.measurement import from_bench
from harness.results.validity import Expected, check
from harness.runtime.base import Command
from harness.runtime.local import LocalRuntime
from harness.suite.plan import RequestSet

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

FIRST_S, STEP_S = 0.5, 0.05
REQUESTS = RequestSet(
    input_len=128, output_len=11, concurrency=2, prompts=4, seed=7, name="scripted"
)


@dataclass
class Schedule:
    """When the server really sent what, request by request; the truth to compare with."""

    ttfts_s: list[float] = field(default_factory=list)
    tpots_s: list[float] = field(default_factory=list)
    seen: list[dict[str, object]] = field(default_factory=list)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    schedule: Schedule

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/tokenize":
            tokens = [ord(letter) for letter in body["prompt"]]
            self.answer("application/json", [json.dumps({"tokens": tokens}).encode()])
            return
        self.schedule.seen.append(body)
        self.answer("text/event-stream", self.stream(body))

    def do_GET(self) -> None:
        self.send_error(404)

    def stream(self, body: dict[str, object]) -> Iterator[bytes]:
        began = time.perf_counter()
        time.sleep(FIRST_S)
        sent = []
        for _ in range(REQUESTS.output_len):
            yield self.event({"choices": [{"text": "x", "index": 0, "finish_reason": None}]})
            sent.append(time.perf_counter())
            time.sleep(STEP_S)
        usage = {"prompt_tokens": len(str(body["prompt"])) + 1,
                 "completion_tokens": REQUESTS.output_len}  # fmt: skip
        yield self.event({"choices": [], "usage": usage})
        yield b"data: [DONE]\n\n"
        self.schedule.ttfts_s.append(sent[0] - began)
        self.schedule.tpots_s.append((sent[-1] - sent[0]) / (len(sent) - 1))

    def event(self, content: dict[str, object]) -> bytes:
        return f"data: {json.dumps(content)}\n\n".encode()

    def answer(self, kind: str, parts: object) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for part in parts:  # type: ignore[attr-defined]
            self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, *_: object) -> None:
        pass


def test_known_schedule_comes_out(runtime: LocalRuntime, model: Path, tmp_path: Path) -> None:
    Handler.schedule = truth = Schedule()
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        argv = bench_argv(
            ClientModel(name="tiny-llama", folder=str(model)),
            REQUESTS,
            base_url=f"http://127.0.0.1:{server.server_port}",
            result_dir=str(tmp_path),
            result_name="bench.json",
        )
        client = Command(role="client", image="vllm-cpu", argv=argv)
        running = runtime.start(client, log=tmp_path / "client.log", owner=runtime.owner)
        try:
            code = running.wait(300, lambda: None)
        finally:
            running.stop(grace=5)
            server.shutdown()
            thread.join()
    assert code == 0, (tmp_path / "client.log").read_text()
    bench = read_bench_file(tmp_path / "bench.json")
    assert check(bench, Expected(input_len=128, output_len=11, concurrency=2)).broken == []
    found = from_bench(bench)
    assert (found.completed, found.failed) == (4, 0)
    assert found.output_lens == (11,) * 4
    assert found.input_lens == (128,) * 4
    assert all(body["ignore_eos"] is True for body in truth.seen)
    assert all("temperature" not in body for body in truth.seen)
    # What the client adds to the server's own times is its overhead, never a gain.
    mean_ttft_ms = 1e3 * sum(truth.ttfts_s) / 4
    mean_tpot_ms = 1e3 * sum(truth.tpots_s) / 4
    assert found.numbers["mean_ttft_ms"] >= mean_ttft_ms * 0.99
    assert found.metric("mean_ttft_ms") == pytest.approx(mean_ttft_ms, rel=0.2)
    assert found.metric("mean_tpot_ms") == pytest.approx(mean_tpot_ms, rel=0.2)
    # Two at once, two waves.
    assert found.metric("output_throughput") == pytest.approx(
        4 * 11 / (2 * (mean_ttft_ms + 10 * mean_tpot_ms) / 1e3), rel=0.25
    )
