"""The toy server's program: its endpoints and counters all differ from vLLM's."""

from __future__ import annotations

import argparse
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

parser = argparse.ArgumentParser()
parser.add_argument("weights")
parser.add_argument("--listen", required=True)
parser.add_argument("--call-it", required=True)
parser.add_argument("--quick", action="store_true")
options = parser.parse_args()
counted = {"prompt": 0, "generation": 0}


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        answers = {
            "/up": "yes",
            "/served-models": json.dumps({"data": [{"id": options.call_it}]}),
            "/counts": f"# TYPE toy_read_total counter\ntoy_read_total {counted['prompt']}\n",
        }
        self.send_response(200 if self.path in answers else 404)
        self.end_headers()
        self.wfile.write(answers.get(self.path, "").encode())

    def do_POST(self) -> None:
        """Accept what the fake client claims to have sent."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        for kind in counted:
            counted[kind] += body[kind]
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: object) -> None:
        pass


print("toy: 7 blocks of cache", flush=True)
host, _, port = options.listen.rpartition(":")
ThreadingHTTPServer((host, int(port)), Handler).serve_forever()
