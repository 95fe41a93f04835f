"""A plan for people: what would happen, in order, how long it takes and what it needs."""

from __future__ import annotations

from collections.abc import Iterator

from harness.clock import duration
from harness.runtime.images import ImagesFile
from harness.suite.model import HubModel
from harness.suite.plan import Plan, Session


def describe(plan: Plan, images: ImagesFile) -> Iterator[str]:
    """Yield the plan's lines."""
    yield f"{plan.title} (suite {plan.suite}, runtime {plan.runtime})"
    if plan.notice:
        yield plan.notice
    yield ""
    sessions = _count(len(plan.sessions), "engine session")
    yield (
        f"{_count(len(plan.cells), 'cell')} in {sessions}, about {duration(plan.expected_s)} "
        "without installation and downloads"
    )
    yield f"  estimated from {plan.estimates.source}"
    repeats = _count(plan.repeats, "repeat")
    yield f"  load {plan.load}: {plan.waves} x concurrency requests, {repeats}"
    yield ""
    yield "before anything starts"
    yield from _needs(plan)
    yield from _images(plan, images)
    yield from _model(plan)
    yield (
        f"  prompts: {len(plan.loads)} sets, {sum(load.prompts for load in plan.loads):,} requests,"
        f" about {duration(plan.estimates.prompts_s)}"
    )
    for number, session in enumerate(plan.sessions, start=1):
        yield ""
        yield from _session(plan, number, session)
    yield ""
    yield f"plan {plan.hash()}"


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"


def _needs(plan: Plan) -> Iterator[str]:
    if plan.needs is None:
        return
    needs = plan.needs
    for name, text in (
        ("disk_bytes", f"{needs.disk_bytes / 1e9:,.0f} GB of disk"),
        ("host_memory_gib", f"{needs.host_memory_gib:,} GiB of host memory"),
        ("shm_gib", f"{needs.shm_gib:,} GiB of /dev/shm"),
        ("driver", f"NVIDIA driver {needs.driver} or newer"),
    ):
        yield f"  needs {text}: {getattr(needs.why, name)}"


def _images(plan: Plan, images: ImagesFile) -> Iterator[str]:
    for name, pin in plan.pins.items():
        image = images.images[name]
        parts = [images.bases[image.base].reference] if image.base else []
        parts += [f"{source.name} {source.version}" for source in image.sources]
        parts += [f"{lock} by hash" for lock in image.locks]
        yield f"  image {name}: {', '.join(parts)} (pin {pin[:12]})"


def _model(plan: Plan) -> Iterator[str]:
    if isinstance(plan.model, HubModel):
        revision = plan.model.revision or "locked at the first download"
        yield (
            f"  model {plan.model.repository}, revision {revision}: "
            f"{plan.model.bytes / 1e9:,.0f} GB to download"
        )
    else:
        yield f"  model {plan.model.name}: generated, random weights"


def _session(plan: Plan, number: int, session: Session) -> Iterator[str]:
    yield f"{number}. {session.recipe}: {session.title}"
    start = plan.estimates.engine_start_s
    yield f"   start: about {duration(start)}"
    warmups = ", ".join(load.name.removeprefix("warmup-") for load in session.warmups)
    yield f"   warm up, discarded ({warmups}): about {duration(session.warmup_s)}"
    for cell in session.cells:
        load = cell.load
        lengths = f"{load.input_len:,} -> {_count(load.output_len, 'token')}"
        yield (
            f"   {cell.id}: {load.prompts:,} x {lengths}, {load.concurrency:,} at once, "
            f"seed {load.seed}, about {duration(cell.expected_s)}"
        )
