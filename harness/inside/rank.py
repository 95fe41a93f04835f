"""One rank of an in-process engine: it does what `harness.inside.launcher` tells it.

``python3 -m harness.inside.rank JOB.json RANK ORDERS ANSWERS``, the last two being inherited file
descriptors. Orders: arm (read a wave's prompts), go, close. When the launcher is gone, the rank
exits too: a thread sees its pipe close.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import queue
import sys
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness.inside.backend import Backend, Prompt
from harness.inside.jobs import read_job


def share(prompts: list[list[int]], rank: int, ranks: int) -> list[Prompt]:
    """Return this rank's prompts: r, r + ranks, r + 2 x ranks, ..."""
    return [(index, prompts[index]) for index in range(rank, len(prompts), ranks)]


def make_backend(job: dict[str, Any], rank: int) -> Backend:
    """Start the job's engine in this process; ``backend`` is ``module:class``."""
    module, _, name = job["backend"].partition(":")
    backend: Backend = getattr(importlib.import_module(module), name)(job, rank)
    return backend


def _orders(descriptor: int) -> Iterator[dict[str, Any]]:
    """Yield orders; exit immediately when the launcher is gone, whatever the rank is doing."""
    inbox: queue.Queue[dict[str, Any]] = queue.Queue()

    def read() -> None:
        with os.fdopen(descriptor, encoding="utf-8") as stream:
            for line in stream:
                inbox.put(json.loads(line))
        os._exit(1)

    threading.Thread(target=read, daemon=True).start()
    while True:
        yield inbox.get()


def main() -> None:
    """Start the engine, then carry out orders until told to close."""
    rank, orders, answers = (int(argument) for argument in sys.argv[2:5])
    job = read_job()

    def answer(event: str, **fields: object) -> None:
        line = json.dumps({"event": event, **fields}, allow_nan=False) + "\n"
        with os.fdopen(os.dup(answers), "w", encoding="utf-8") as stream:
            stream.write(line)

    stream = _orders(orders)
    try:
        backend = make_backend(job, rank)
        answer("ready", **backend.info())
        prompts: list[Prompt] = []
        wave: dict[str, Any] = {}
        digest = ""
        for order in stream:
            if order["order"] == "arm":
                wave = order["wave"]
                text = Path(wave["ids"]).read_bytes()
                digest = hashlib.sha256(text).hexdigest()
                ids = [json.loads(line)["prompt_token_ids"] for line in text.splitlines()]
                prompts = share(ids, rank, job["ranks"])
                answer("armed")
            elif order["order"] == "go":
                answer("done", ids_sha256=digest, **backend.run(wave, prompts))
            else:
                backend.close()
                answer("closed")
                break
    except BaseException as error:
        traceback.print_exc()
        answer("failed", reason=f"{type(error).__name__}: {error}".splitlines()[0])
        raise
    # An engine's own threads must not keep the process alive.
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
