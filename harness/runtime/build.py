"""Builds through Docker's command line: only it speaks BuildKit.

A build is planned as plain data; its log is read as it grows, so that a person sees which step
runs, and a failing step is shown with its own last lines.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from harness.clock import Clock, duration
from harness.console import Progress
from harness.errors import ImageError
from harness.files import make_folder, write_text
from harness.process import Owner, shell_line
from harness.runtime.build_log import TAIL_LINES, BuildLog, Step
from harness.runtime.images import Images
from harness.runtime.wheelhouse import download_commands
from harness.stamped_log import log_tail

BUILDKIT = {"DOCKER_BUILDKIT": "1"}
BUILD_SECONDS = 6 * 3600.0
BUILD_EXPECTED_SECONDS = 900.0
COMPLETE = ".complete"
PIN_LABEL = "b300-repro.pin"


@dataclass(frozen=True, kw_only=True)
class BuildPlan:
    """One build: its context, its arguments, and what is fetched into the context beforehand."""

    image: str
    tag: str
    pin: str
    source: Path
    context: Path
    args: Mapping[str, str]
    downloads: tuple[tuple[str, ...], ...]

    rebuild: bool = False
    """Whether every step runs again, cached or not."""

    def argv(self) -> tuple[str, ...]:
        """Return the build's command."""
        arguments = [f"{name}={value}" for name, value in self.args.items()]
        return (
            *("docker", "build", "--progress", "plain", "--network", "host"),
            *("--tag", self.tag, "--label", f"{PIN_LABEL}={self.pin}"),
            *(part for argument in arguments for part in ("--build-arg", argument)),
            *(("--no-cache",) if self.rebuild else ()),
            str(self.context),
        )


def plan_build(name: str, images: Images, cache: Path) -> BuildPlan:
    """Plan the build of ``name`` on this host."""
    image, folder, pin = images.image(name), images.folder(name), images.pin(name)
    context = cache / "contexts" / f"{name}-{pin[:12]}" if image.wheels_for else folder
    args = {"BASE": images.base_reference(name), **images.build_args(name)}
    for source in image.sources:
        args["SDIST_" + source.name.upper().replace("-", "_")] = source.requirement
    if image.memory_per_job_gb:
        args.setdefault("JOBS", str(parallel_jobs(image.memory_per_job_gb)))
    return BuildPlan(
        image=name,
        tag=images.run_reference(name),
        pin=pin,
        source=folder,
        context=context,
        args=args,
        downloads=tuple(download_commands(name, images, context)) if image.wheels_for else (),
    )


def parallel_jobs(memory_per_job_gb: float) -> int:
    """Return how many compilers this host can run concurrently: by cores, and by memory."""
    by_memory = int(psutil.virtual_memory().total / (memory_per_job_gb * 1e9))
    return max(1, min(os.cpu_count() or 1, by_memory))


def build_line(name: str, images: Images, cache: Path) -> list[str]:
    """Return the shell lines of the build of ``name``."""
    plan = plan_build(name, images, cache)
    lines = []
    if plan.downloads:
        locked, torch, fallback = (shell_line(argv) for argv in plan.downloads)
        lines.append(shell_line(("mkdir", "-p", str(plan.context))))
        lines.append(shell_line(("cp", "-r", f"{plan.source}/.", str(plan.context))))
        lines += [locked, f"{torch} || {fallback}"]
    return [*lines, shell_line(plan.argv(), BUILDKIT)]


@dataclass(frozen=True)
class BuildResult:
    """How a build went: its steps, its duration in seconds, and where its full log is."""

    steps: tuple[Step, ...]
    seconds: float
    log: Path


@dataclass(frozen=True)
class Builder:
    """Carries out builds."""

    cache: Path
    owner: Owner
    clock: Clock
    progress: Progress

    def build(self, plan: BuildPlan) -> BuildResult:
        """Build an image.

        Raises:
            ImageError: a download or a step failed; with its last lines and the log's path.
        """
        if shutil.which("docker") is None:
            raise ImageError(
                f"cannot build {plan.image}: there is no `docker` command",
                usually="only the engine is installed, or PATH is that of another user",
                next_step="install Docker's client with buildx, then run the same command again",
            )
        began = self.clock.monotonic()
        log = self.cache / "logs" / f"build-{plan.image}-{plan.pin[:12]}.log"
        log.unlink(missing_ok=True)
        make_folder(log.parent)
        if plan.downloads:
            self._fill_context(plan, log)
        read = BuildLog()
        code = self._run(f"build {plan.image}", plan.argv(), log, read, BUILD_EXPECTED_SECONDS)
        if code != 0:
            raise _build_failed(plan, code, read.failure(), log)
        seconds = self.clock.monotonic() - began
        steps = sorted(read.steps, key=lambda step: int(step.text.partition("/")[0]))
        return BuildResult(tuple(steps), round(seconds, 1), log)

    def _fill_context(self, plan: BuildPlan, log: Path) -> None:
        """Copy the Dockerfile's folder, and fetch wheels into the copy, unless already done."""
        complete = plan.context / COMPLETE
        if complete.exists() and not plan.rebuild:
            return
        shutil.rmtree(plan.context, ignore_errors=True)
        make_folder(plan.context.parent)
        shutil.copytree(plan.source, plan.context)
        locked, torch, fallback = plan.downloads
        fetched = self._run("fetch locked wheels", locked, log, None, 90) == 0 and (
            self._run("fetch torch, CPU build", torch, log, None, 30) == 0
            or self._run("fetch torch, CUDA build", fallback, log, None, 300) == 0
        )
        if not fetched:
            raise ImageError(
                f"could not fetch the wheels for {plan.image}; the last lines:\n"
                f"{log_tail(log, TAIL_LINES)}",
                usually="no package index answers, or the disk is full",
                next_step=f"read {log}, then run the same command again",
            )
        write_text(complete, "")

    def _run(
        self, text: str, argv: Sequence[str], log: Path, read: BuildLog | None, expected_s: float
    ) -> int | None:
        """Run one command with this user's environment; show the steps of a build."""
        seen = log.stat().st_size if log.exists() else 0

        def tick() -> None:
            nonlocal seen
            self.progress.tick()
            if read is not None:
                with log.open("rb") as stream:
                    stream.seek(seen)
                    whole = stream.read().rpartition(b"\n")[0]
                    seen += len(whole)
                for step in read.feed(whole.decode(errors="replace").splitlines()):
                    self.progress.say(f"  step {step}")

        with self.progress.step(text, expected_s=expected_s):
            # HF_TOKEN is only for the download of the model.
            env = {name: value for name, value in os.environ.items() if name != "HF_TOKEN"}
            process = self.owner.spawn(argv, env={**env, **BUILDKIT}, log=log)
            try:
                code = process.wait(BUILD_SECONDS, tick)
            finally:
                process.stop(grace=10)
            tick()
        return code


def _build_failed(plan: BuildPlan, code: int | None, failure: str, log: Path) -> ImageError:
    usually = "a package index did not answer, or a source does not build on this host"
    next_step = f"read {log}, then run the same command again: finished steps are kept"
    if "no space left on device" in failure.lower():
        usually = "the disk of Docker's data root is full"
        next_step = "free some space (docker system df), then run the same command again"
    elif "buildx" in failure:
        usually = "this Docker client has no buildx, which BuildKit builds need"
        next_step = "install docker-buildx-plugin (Debian and Ubuntu: docker-buildx)"
    outcome = f"still running after {duration(BUILD_SECONDS)}" if code is None else f"exit {code}"
    return ImageError(
        f"could not build {plan.image} ({outcome}): {failure}\n(the full log: {log})",
        usually=usually,
        next_step=next_step,
    )
