"""A small suite, a made-up engine environment, and a guard against anything real."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml as pyyaml
from hypothesis import settings

from harness.clock import Clock, SystemClock
from harness.host.facts import HostFacts, HostReading
from harness.process import OWNER_VARIABLE
from harness.results.reference import Reference
from harness.runner.run import Outcome, Reproduction
from harness.runner.runtimes import RUNTIMES, Runtimes
from harness.runner.site import Site
from harness.runtime.environment import COMPLETE, Environment
from harness.runtime.images import LOCK, LOCK_FILE, Images
from harness.suite.plan import Plan
from harness.suite.planner import Choice, make_plan
from harness.suite.read import read_suite

# A slow machine is not a failure; speed is not tested here.
settings.register_profile("kit", deadline=None)
settings.load_profile("kit")

BASE = {"name": "made-up", "tag": "1", "evidence": "made up", "date": "2026-11-30"}
RESOURCES = Path(__file__).parent / "resources"
IMAGE = "vllm-cpu"

FACTS = HostFacts(
    host_id="0000test",
    machine="x86_64",
    cpu="A test CPU",
    cpu_flags=frozenset({"avx2"}),
    cores=2,
    memory_gib=24.0,
    system="Test OS",
    kernel="6.0",
    python="3.11.0",
    gpus=(),
)

SUITE = {
    "schema_version": 1,
    "title": "A test suite",
    "about": "Made up.",
    "notice": "Nothing here was measured.",
    "model": {"name": "tiny-llama", "generator": "tiny-llama"},
    "loads": {"toy": {"waves": 1, "why": "it is a test"}},
    "warmup": {"prompts": 2, "max_output_len": 4},
    "workloads": {
        "128-8-c2": {"input_len": 128, "output_len": 8, "concurrency": 2},
        "1k-1-c1": {"input_len": 1024, "output_len": 1, "concurrency": 1},
    },
    "sessions": [
        {"recipe": "server", "workloads": ["128-8-c2", "1k-1-c1"]},
        {"recipe": "offline", "workloads": ["128-8-c2", "1k-1-c1"]},
    ],
    "tables": [
        {
            "id": "decode",
            "title": "Decode",
            "columns": [
                {"title": "In → Out", "show": "shape"},
                {"title": "Concurrent", "show": "concurrency"},
                {"title": "Output tok/s", "recipe": "server", "metric": "output_throughput"},
                {"title": "TPOT", "recipe": "server", "metric": "mean_tpot_ms"},
                {"title": "server ÷ offline", "ratio": ["server", "offline"]},
            ],
            "rows": [
                {"workload": "128-8-c2", "metric": "output_throughput"},
                {"workload": "1k-1-c1", "metric": "input_throughput", "label": "1K → 1 (prefill)"},
            ],
        }
    ],
    "estimates": {
        "source": "nothing",
        "engine_start_s": 1,
        "client_start_s": 1,
        "prompts_s": 1,
        "input_tok_s": 1000,
        "output_tok_s": 100,
    },
    "limits": {"engine_start_s": 40, "wave_s": 40, "stop_s": 2},
}

SERVER = {
    "schema_version": 1,
    "title": "A server",
    "engine": "vllm-server",
    "image": IMAGE,
    "args": {"--enforce-eager": True},
    "why": {"--enforce-eager": "it is a test"},
}


class QuietProgress:
    """Keeps what a person would have seen."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, text: str) -> None:
        self.lines.append(text)

    def expect(self, seconds: float) -> None:
        pass

    def step(self, text: str, *, expected_s: float) -> QuietProgress:
        self.lines.append(text)
        return self

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        return None

    def tick(self) -> None:
        pass


@dataclass
class Kit:
    """The kit with made-up engines, in a folder of its own."""

    folder: Path
    suite: dict[str, Any] = field(default_factory=lambda: json.loads(json.dumps(SUITE)))
    progress: QuietProgress = field(default_factory=QuietProgress)
    clock: Clock = field(default_factory=SystemClock)
    reference: Reference | None = None
    privileged: bool = False
    runtimes: Runtimes = field(default_factory=lambda: RUNTIMES)

    @property
    def site(self) -> Site:
        return Site(
            reports=self.folder / "reports",
            cache=self.folder / "cache",
            images=Images(self.folder / "docker"),
            lock=self.folder / "host.lock",
            privileged=self.privileged,
        )

    def write_suite(self) -> None:
        recipes = self.folder / "recipes" / "test"
        recipes.mkdir(parents=True, exist_ok=True)
        (recipes / "suite.yaml").write_text(pyyaml.safe_dump(self.suite, sort_keys=False))
        (recipes / "server.yaml").write_text(pyyaml.safe_dump(SERVER, sort_keys=False))
        offline = {"schema_version": 1, "extends": "server", "engine": "vllm-offline"}
        (recipes / "offline.yaml").write_text(pyyaml.safe_dump({**offline, "title": "In-process"}))

    def install_fake(self) -> None:
        """Make the image whose programs are `resources/fake_engine.py`."""
        source = (RESOURCES / "fake_engine.py").read_text()
        self.add_image(IMAGE, {"vllm": source, "python3": source})

    def add_image(self, name: str, programs: Mapping[str, str]) -> None:
        """Make an image of Python programs: an entry in the lock, and a complete environment."""
        lock, folder = self.site.images.root / LOCK_FILE, self.site.images.root / name
        folder.mkdir(parents=True)
        entry = {"base": "made-up", "locks": [LOCK], "local": True}
        data: dict[str, Any] = {"schema_version": 1, "bases": {"made-up": BASE}, "images": {}}
        data = pyyaml.safe_load(lock.read_text()) if lock.exists() else data
        data["images"][name] = entry
        lock.write_text(pyyaml.safe_dump(data))
        (folder / LOCK).write_text("nothing==1\n")
        (folder / "shim" / "made-up.dist-info").mkdir(parents=True)
        (folder / "shim" / "made-up.dist-info" / "METADATA").write_text("Name: made-up\n")
        environment = Environment(name, self.site.images, self.site.cache)
        environment.programs.mkdir(parents=True)
        for program, source in programs.items():
            path = environment.programs / program
            path.write_text(f"#!{sys.executable}\n{source}")
            path.chmod(0o755)
        (environment.folder / COMPLETE).write_text(json.dumps({"image": name, "torch": []}))

    def fault(self, **faults: object) -> None:
        path = self.folder / "home" / "fake.json"
        path.write_text(json.dumps(faults))

    def heal(self) -> None:
        (self.folder / "home" / "fake.json").unlink(missing_ok=True)

    def plan(self, **options: Any) -> Plan:
        self.write_suite()
        suite = read_suite("test", self.folder / "recipes")
        images = {recipe.image for recipe in suite.recipes.values()}
        images |= {suite.file.client_image} if suite.file.client_image else set()
        pins = dict.fromkeys(images, "0" * 64)
        choice = Choice(runtime="local", **options)
        return make_plan(suite, choice, pins=pins, kit_version="0.0")

    def run(self, *, fresh: bool = False, retry_failed: bool = False, **options: Any) -> Outcome:
        host = HostReading(FACTS, {"cpuinfo.txt": "made up\n"})
        return Reproduction(
            plan=self.plan(**options),
            site=self.site,
            host=host,
            reference=self.reference,
            clock=self.clock,
            progress=self.progress,
            runtimes=self.runtimes,
        ).run(fresh=fresh, retry_failed=retry_failed)

    def runs(self) -> list[Path]:
        return sorted(self.site.reports.glob("*"))


@pytest.fixture
def kit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kit:
    """The kit with an environment whose programs are `resources/fake_engine.py`."""
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    made = Kit(tmp_path)
    made.install_fake()
    return made


@pytest.fixture(autouse=True)
def _nothing_left(tmp_path: Path) -> object:
    """Fail a test that leaves behind a process that the kit started for it."""
    yield
    left = []
    for candidate in psutil.process_iter():
        try:
            # Its environment names the test's folder, since tests run in parallel.
            environ = candidate.environ()
            if OWNER_VARIABLE in environ and any(str(tmp_path) in v for v in environ.values()):
                left.append(candidate.cmdline())
        except psutil.Error:
            continue
    assert not left, f"left running: {left}"
