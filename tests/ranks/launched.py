"""The real launcher and ranks, on the double of DeepInfer, in processes of their own."""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
DOUBLES = ROOT / "tests" / "doubles"
ENDED_SECONDS = 60.0


@dataclass
class Launched:
    """One job for the launcher, and its outcome."""

    folder: Path
    ranks: int = 2
    drive: str = "step"
    prompts: int = 8
    input_len: int = 64
    output_len: int = 12
    concurrency: int = 8
    engine: dict[str, Any] = field(default_factory=dict)
    fault: dict[str, Any] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)
    wave_s: float = 30.0

    @property
    def ids(self) -> Path:
        return self.folder / "prompts" / "ids.jsonl"

    @property
    def truth_folder(self) -> Path:
        return self.folder / "truth"

    def job(self) -> dict[str, Any]:
        session, cell = self.folder / "session", self.folder / "cell"
        for folder in (session, cell, self.truth_folder, self.ids.parent, self.folder / "model"):
            folder.mkdir(parents=True, exist_ok=True)
        numbers = random.Random(1)
        lines = [
            json.dumps({"prompt_token_ids": numbers.choices(range(1000, 128000), k=self.input_len)})
            for _ in range(self.prompts)
        ]
        self.ids.write_text("".join(f"{line}\n" for line in lines))
        (self.folder / "model" / "generation_config.json").write_text(
            json.dumps({"temperature": 0.6, "top_p": 0.95, "top_k": 0, "do_sample": True})
        )
        wave = {
            "ids": str(self.ids),
            "output_len": self.output_len,
            "concurrency": self.concurrency,
            "seed": 7,
        }
        return {
            "backend": "harness.inside.deepinfer_rank:DeepInferRank",
            "gpu_per_rank": True,
            "drive": self.drive,
            "ranks": self.ranks,
            "engine": {
                "data_parallel_size": self.ranks,
                "expert_parallel_size": self.ranks,
                "max_num_seqs": 256,
                **self.engine,
            },
            "model": str(self.folder / "model"),
            "folder": str(session),
            "events": str(session / "events.jsonl"),
            "limits": {"start_s": 30.0, "wave_s": self.wave_s, "stop_s": 10.0},
            "waves": [
                {"id": "warmup", "result": str(session / "warmup.json"), **wave},
                {"id": "cell", "result": str(cell / "result.json"), **wave},
            ],
        }

    def start(self) -> subprocess.Popen[str]:
        path = self.folder / "job.json"
        path.write_text(json.dumps(self.job()))
        env = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(DOUBLES)]),
            "PYTHONDONTWRITEBYTECODE": "1",
            "DOUBLE_TRUTH": str(self.truth_folder),
            "DOUBLE_FAULT": json.dumps(self.fault),
            **self.env,
        }
        return subprocess.Popen(
            [sys.executable, "-m", "harness.inside.launcher", str(path)],
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self) -> tuple[int, str]:
        """Return exit code and output."""
        process = self.start()
        output, _ = process.communicate(timeout=ENDED_SECONDS)
        return process.returncode, output

    def result(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / "cell" / "result.json").read_text())
        return found

    def events(self) -> list[dict[str, Any]]:
        path = self.folder / "session" / "events.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()]

    def truth(self) -> list[list[dict[str, Any]]]:
        """Return each rank's steps."""
        files = sorted(self.truth_folder.glob("rank-*.json"))
        return [json.loads(path.read_text()) for path in files]

    def sha256(self) -> str:
        return hashlib.sha256(self.ids.read_bytes()).hexdigest()

    def living(self) -> list[int]:
        """Return the processes that still name this job's folder."""
        found = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                text = path.read_bytes().decode(errors="replace")
            except OSError:
                continue
            if str(self.folder / "job.json") in text:
                found.append(int(path.parent.name))
        return found
