"""A registry of the tests' own: it serves one image, read-only, over the distribution API."""

from __future__ import annotations

import gzip
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"


def digest_of(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


class Registry:
    """One image ``name:tag``; `corrupt` makes it serve other bytes under the same digest."""

    def __init__(self, layer: bytes, name: str = "busybox", tag: str = "1") -> None:
        self.name, self.tag = name, tag
        self.port = 0
        self.asked: list[str] = []
        packed = gzip.compress(layer, mtime=0)
        config = json.dumps(
            {
                "architecture": "amd64",
                "os": "linux",
                "config": {"Cmd": ["sh"]},
                "rootfs": {"type": "layers", "diff_ids": [digest_of(layer)]},
                "history": [{"created": "2026-11-30T00:00:00Z"}],
            }
        ).encode()
        manifest = json.dumps(
            {
                "schemaVersion": 2,
                "mediaType": MANIFEST,
                "config": {
                    "mediaType": "application/vnd.docker.container.image.v1+json",
                    "size": len(config),
                    "digest": digest_of(config),
                },
                "layers": [
                    {
                        "mediaType": "application/vnd.docker.image.rootfs.diff.tar.gzip",
                        "size": len(packed),
                        "digest": digest_of(packed),
                    }
                ],
            }
        ).encode()
        self.digest = digest_of(manifest)
        self._blobs = {digest_of(config): config, digest_of(packed): packed}
        self._manifest = manifest

    @property
    def repository(self) -> str:
        """The image's name as docker wants it; a registry on the loopback may speak HTTP."""
        return f"127.0.0.1:{self.port}/{self.name}"

    def corrupt(self) -> None:
        """Serve another manifest from now on, under whatever digest is asked for."""
        self._manifest = self._manifest.replace(b'"schemaVersion": 2', b'"schemaVersion":2 ')

    def answer(self, path: str) -> tuple[int, bytes, dict[str, str]]:
        """Return status, body and headers."""
        self.asked.append(path)
        root = f"/v2/{self.name}"
        if path == "/v2/":
            return 200, b"{}", {}
        if path in (f"{root}/manifests/{self.tag}", f"{root}/manifests/{self.digest}"):
            headers = {"Content-Type": MANIFEST, "Docker-Content-Digest": self.digest}
            return 200, self._manifest, headers
        if path.startswith(f"{root}/blobs/") and (blob := self._blobs.get(path.split("/")[-1])):
            return 200, blob, {"Content-Type": "application/octet-stream"}
        body = {"errors": [{"code": "MANIFEST_UNKNOWN", "message": "manifest unknown"}]}
        return 404, json.dumps(body).encode(), {"Content-Type": "application/json"}


@contextmanager
def serve(registry: Registry) -> Iterator[Registry]:
    """Serve ``registry`` on a free port of the loopback."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body, headers = registry.answer(self.path)
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        do_HEAD = do_GET  # noqa: N815 - the server's own name

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    registry.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield registry
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
