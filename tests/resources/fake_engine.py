"""A stand-in for an engine environment's programs, for unit tests, without any engine.

It is installed as ``vllm`` and ``python3`` of a made-up environment. What it should do wrong is
read from ``fake.json`` in HOME; without it everything goes well. Its numbers are made up.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import sys
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

BEGIN = 1
COMPILED = (
    "WARNING Triton compile during inference: made_up_kernel. This causes a latency spike; "
    "consider extending warmup to cover this shape/config."
)


def faults_file() -> Path:
    return Path(os.environ["HOME"]) / "fake.json"


def fault(name: str) -> Any:
    path = faults_file()
    return json.loads(path.read_text()).get(name) if path.exists() else None


def option(arguments: list[str], name: str) -> str:
    return arguments[arguments.index(name) + 1]


def tokens(text: str) -> list[int]:
    return [BEGIN, *(ord(letter) for letter in text)]


def http_server(name: str, port: int) -> ThreadingHTTPServer:
    """Return the server, bound; its counters tell what the made-up client claims to have sent."""
    counted = {"prompt": 0, "generation": 0}
    dead: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == "/metrics":
                self.send(
                    "".join(
                        f"# TYPE vllm:{kind}_tokens_total counter\n"
                        f'vllm:{kind}_tokens_total{{engine="0"}} {count}.0\n'
                        for kind, count in counted.items()
                    )
                )
                return
            if fault("serve") == "hangs":
                time.sleep(3600)
            if dead and self.path == "/health":
                self.send_error(503)
                return
            served = "another-model" if fault("serve") == "another-model" else name
            self.answer(
                {
                    "/health": {},
                    "/version": {"version": "0.0-fake"},
                    "/v1/models": {"data": [{"id": served}]},
                }[self.path]
            )

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self.path == "/die":
                print("Segmentation fault (made up)", flush=True)
                os._exit(139)
            if self.path == "/killed":
                os.kill(os.getpid(), signal.SIGKILL)
            if self.path == "/engine-dies":
                dead.append("EngineDeadError (made up)")
                print(dead[0], flush=True)
                self.answer({})
                return
            if self.path == "/served":
                for kind in counted:
                    counted[kind] += body[kind]
                if body.get("compiled"):
                    print(COMPILED, flush=True)
                self.answer({})
                return
            shift = 1 if fault("serve") == "other-tokens" else 0
            self.answer({"tokens": [token + shift for token in tokens(body["prompt"])]})

        def answer(self, body: object) -> None:
            self.send(json.dumps(body))

        def send(self, text: str) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None:
            pass

    return ThreadingHTTPServer(("127.0.0.1", port), Handler)


def serve(arguments: list[str]) -> int:
    name, port = option(arguments, "--served-model-name"), int(option(arguments, "--port"))
    print("INFO fake server loading", flush=True)
    if fault("serve") == "dies-loading":
        print("ValueError: no such setting", flush=True)
        return 3
    if fault("serve") == "ignores-sigterm":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    else:
        signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    if fault("serve") == "never-ready":
        while True:
            time.sleep(1)

    try:
        http_server(name, port).serve_forever()
    except OSError as error:
        print(f"OSError: {error}", flush=True)
        return 1
    return 0


def post(url: str, body: dict[str, object]) -> None:
    data = json.dumps(body).encode()
    urllib.request.urlopen(urllib.request.Request(url, data=data, method="POST"), timeout=5)


def bench(arguments: list[str]) -> int:
    url = option(arguments, "--base-url")
    folder = Path(option(arguments, "--result-dir"))
    trouble = fault("bench") or {}
    wrong = trouble.get(next((part for part in trouble if part in str(folder)), ""))
    if wrong == "no-result":
        print("all requests failed", flush=True)
        return 0
    if wrong == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if wrong == "exit-1":
        print("ConnectionRefusedError", flush=True)
        return 1
    if wrong == "hangs":
        (folder / "hanging").touch()
        while True:
            time.sleep(1)
    if wrong in ("server-dies", "server-dies-once", "server-killed"):
        if wrong == "server-dies-once":
            faults_file().unlink()
        with contextlib.suppress(OSError):
            post(f"{url}/{'killed' if wrong == 'server-killed' else 'die'}", {})
        while True:
            time.sleep(1)
    count = int(option(arguments, "--num-prompts"))
    inputs = [int(option(arguments, "--random-input-len"))] * count
    outputs = [int(option(arguments, "--random-output-len"))] * count
    if wrong == "short-output":
        outputs[0] -= 1
    if wrong == "engine-dies":
        post(f"{url}/engine-dies", {})
    done = 0 if wrong in ("all-failed", "engine-dies") else count
    duration = 2.0
    rate = "inf" if wrong == "all-at-once" else option(arguments, "--request-rate")
    result = {
        "model_id": option(arguments, "--model"),
        "num_prompts": count,
        "request_rate": rate if rate == "inf" else float(rate),
        "max_concurrency": (
            int(option(arguments, "--max-concurrency"))
            if "--max-concurrency" in arguments
            else None
        ),
        "duration": duration,
        "completed": done,
        "failed": count - done,
        "output_throughput": sum(outputs) / duration,
        "total_token_throughput": (sum(inputs) + sum(outputs)) / duration,
        "total_input_tokens": sum(inputs) if done else 0,
        "total_output_tokens": sum(outputs) if done else 0,
        "mean_ttft_ms": 12.5,
        "mean_tpot_ms": 24.8 if max(outputs) > 1 else 0.0,
        "input_lens": inputs,
        "output_lens": outputs,
        "errors": ["" if done else "Connection refused"] * count,
    }
    extra = 2 if wrong == "others-use-it" else 1
    compiled = wrong in ("compiles", "compiles-once")
    post(
        f"{url}/served",
        {"prompt": sum(inputs) * extra, "generation": sum(outputs), "compiled": compiled},
    )
    if wrong == "compiles-once":
        faults_file().unlink()
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(result)
    text = text[: len(text) // 2] if wrong == "truncated" else text
    (folder / option(arguments, "--result-filename")).write_text(text)
    if wrong == "server-dies-afterwards":
        with contextlib.suppress(OSError):
            post(f"{url}/die", {})
    return 0


def prompts(job: dict[str, Any]) -> int:
    for wanted in job["sets"]:
        arguments = wanted["client_args"]
        length = int(option(arguments, "--random-input-len"))
        texts = [
            chr(97 + index % 26) * (length - 1)
            for index in range(int(option(arguments, "--num-prompts")))
        ]
        lines = "".join(json.dumps({"prompt_token_ids": tokens(text)}) + "\n" for text in texts)
        path = Path(wanted["ids"])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(lines)
        manifest = {
            "made_by": "a fake",
            "client_args": arguments,
            "special_token_ids": [BEGIN],
            "count": len(texts),
            "lengths": [length + (fault("prompts") == "drift")] * len(texts),
            "with_reserved_ids": 1 if fault("prompts") == "reserved" else 0,
            "sha256": hashlib.sha256(lines.encode()).hexdigest(),
            "samples": [{"index": 0, "text": texts[0]}],
        }
        Path(wanted["manifest"]).write_text(json.dumps(manifest))
    return 0


def driver(job: dict[str, Any]) -> int:
    trouble = fault("driver") or {}
    with Path(job["events"]).open("a") as events:

        def emit(event: str, **fields: object) -> None:
            events.write(json.dumps({"event": event, "time": 0.0, **fields}) + "\n")
            events.flush()

        if trouble.get("start") == "dies":
            print("RuntimeError: no memory", flush=True)
            return 1
        about = {"engine": "fake", "version": "0.0-fake", "sampling": {}, "ranks": job["ranks"]}
        emit("ready", **about, kv_cache_tokens=1, max_num_seqs=8)
        for wave in job["waves"]:
            emit("wave-started", wave=wave["id"])
            if trouble.get(wave["id"]) == "dies":
                print("RuntimeError: made up", flush=True)
                return 1
            if trouble.get(wave["id"]) == "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            if trouble.get(wave["id"]) == "hangs":
                while True:
                    time.sleep(1)
            text = Path(wave["ids"]).read_text()
            lines = text.splitlines()
            length, count = wave["output_len"], len(lines)
            record = {
                "duration_s": float(count),
                "ids_sha256": hashlib.sha256(text.encode()).hexdigest(),
                "ranks": [
                    {
                        "rank": 0,
                        "start_s": 0.0,
                        "end_s": float(count),
                        "requests": count,
                        "output_tokens": count * length,
                    }
                ],
                "requests": [
                    {
                        "index": index,
                        "start_s": 0.0,
                        "first_token_s": 0.5,
                        "last_token_s": 0.5 + (length - 1) * 0.01,
                        "prompt_tokens": len(json.loads(line)["prompt_token_ids"]),
                        "output_tokens": length,
                        "finish_reason": "length",
                        "drafted": 0,
                        "accepted": 0,
                        "drafting_steps": 0,
                    }
                    for index, line in enumerate(lines)
                ],
            }
            path = Path(wave["result"])
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(record))
            emit("wave-finished", wave=wave["id"], duration_s=float(count))
        if trouble.get("end") == "dies":
            return 1
        emit("finished")
    return 0


def run(argv: list[str]) -> int:
    """Do what a command line asks for; the first word is the program."""
    program, arguments = argv[0], argv[1:]
    if program == "vllm":
        return serve(arguments) if arguments[0] == "serve" else bench(arguments)
    module, job = arguments[1], json.loads(Path(arguments[2]).read_text())
    if module == "harness.inside.waves":
        return max(bench(wave) for wave in job["waves"])
    return {"harness.inside.prompts": prompts, "harness.inside.launcher": driver}[module](job)


if __name__ == "__main__":
    sys.exit(run([Path(sys.argv[0]).name, *sys.argv[1:]]))
