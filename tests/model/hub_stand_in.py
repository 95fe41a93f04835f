"""A small stand-in of the hub's HTTP API: one repository, one commit, resumable downloads."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

COMMIT = "ab" * 20


@dataclass
class Hub:
    """What it serves, what it was asked, and how it misbehaves."""

    repository: str
    files: Mapping[str, bytes]
    large: tuple[str, ...] = ()
    """Files that come with a SHA-256, as those in large-file storage do."""
    token: str | None = None
    """Where given, requests without it are refused."""
    cut_after: int | None = None
    """Bytes of the next large download after which the connection breaks, once."""
    asked: list[tuple[str, str, str | None]] = field(default_factory=list)
    url: str = ""

    def info(self) -> bytes:
        siblings = []
        for name, data in self.files.items():
            entry: dict[str, object] = {"rfilename": name, "size": len(data), "blobId": "0" * 40}
            if name in self.large:
                sha256 = hashlib.sha256(data).hexdigest()
                entry["lfs"] = {"sha256": sha256, "size": len(data), "pointerSize": 100}
            siblings.append(entry)
        return json.dumps(
            {"id": self.repository, "sha": COMMIT, "siblings": siblings, "tags": []}
        ).encode()


@contextmanager
def serve(hub: Hub) -> Iterator[Hub]:
    """Serve ``hub`` on a free port."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            hub.asked.append((self.command, self.path, self.headers.get("Range")))
            path = self.path.partition("?")[0]
            if hub.token and self.headers.get("Authorization") != f"Bearer {hub.token}":
                self._send(401, b"", {"X-Error-Code": "GatedRepo", "X-Error-Message": "log in"})
            elif path.startswith(f"/api/models/{hub.repository}/revision/"):
                self._send(200, hub.info(), {"Content-Type": "application/json"})
            elif path.startswith(f"/{hub.repository}/resolve/{COMMIT}/"):
                self._file(path.rpartition(f"/resolve/{COMMIT}/")[2])
            else:
                self._send(404, b"", {"X-Error-Code": "RepoNotFound"})

        do_HEAD = do_GET  # noqa: N815 - the server's own name

        def _file(self, name: str) -> None:
            data = hub.files[name]
            etag = hashlib.sha256(data).hexdigest()
            headers = {"ETag": f'"{etag}"', "X-Repo-Commit": COMMIT, "Accept-Ranges": "bytes"}
            start, status = 0, 200
            if asked := self.headers.get("Range"):
                start, status = int(asked.removeprefix("bytes=").partition("-")[0]), 206
                headers["Content-Range"] = f"bytes {start}-{len(data) - 1}/{len(data)}"
            body = data[start:]
            cut = hub.cut_after if name in hub.large and self.command == "GET" else None
            if cut is not None:
                hub.cut_after = None
                self._send(status, body, headers, cut=cut)
                self.close_connection = True
            else:
                self._send(status, body, headers)

        def _send(
            self, status: int, body: bytes, headers: Mapping[str, str], cut: int | None = None
        ) -> None:
            self.send_response(status)
            for key, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(key, value)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body if cut is None else body[:cut])

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    hub.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
