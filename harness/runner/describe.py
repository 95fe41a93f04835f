"""A plan for people: what would happen, in order, how long it takes and what it needs."""

from __future__ import annotations

from collections.abc import Iterator

from harness.clock import duration
from harness.runtime.docker_images import ImageStore
from harness.runtime.image_records import ImageRecord
from harness.runtime.images import Images
from harness.suite.model import HubModel
from harness.suite.plan import Plan, RequestSet, Session


def describe(plan: Plan, images: Images) -> Iterator[str]:
    """Yield the plan's lines."""
    yield f"{plan.title} (suite {plan.suite}, runtime {plan.runtime})"
    if plan.notice:
        yield plan.notice
    yield ""
    sessions = _count(len(plan.sessions), "engine session")
    yield (
        f"{_count(len(plan.cells), 'cell')} in {sessions}, about {duration(plan.expected_s)} "
        "plus installation and downloads"
    )
    yield f"  estimated from {plan.estimates.source}"
    repeats = _count(plan.repeats, "repeat")
    yield f"  load level {plan.load}: {_count(plan.waves, 'wave')} of requests, {repeats}"
    yield ""
    yield "before anything starts"
    yield from _needs(plan)
    yield from _images(plan, images)
    yield from _model(plan)
    prompts = sum(requests.prompts for requests in plan.request_sets)
    yield (
        f"  prompts: {_count(len(plan.request_sets), 'request set')}, {prompts:,} requests, "
        f"about {duration(plan.estimates.prompts_s)}"
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


def _images(plan: Plan, images: Images) -> Iterator[str]:
    for name, pin in plan.pins.items():
        image = images.image(name)
        parts = [images.base_reference(name)]
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
    warmups = ", ".join(requests.name.removeprefix("warmup-") for requests in session.warmups)
    yield f"   warm up, discarded ({warmups}): about {duration(session.warmup_s)}"
    for cell in session.cells:
        requests = cell.requests
        lengths = f"{requests.input_len:,} -> {_count(requests.output_len, 'token')}"
        yield (
            f"   {cell.id}: {requests.prompts:,} x {lengths}, {_sent(requests)}, "
            f"seed {requests.seed}, about {duration(cell.expected_s)}"
        )


def _sent(requests: RequestSet) -> str:
    if requests.concurrency is not None:
        return f"{requests.concurrency:,} in flight"
    return f"{requests.request_rate:g} per second"


def describe_images(images: Images, store: ImageStore) -> Iterator[str]:
    """Yield each image: its pin, where that comes from, and whether it is present, verified."""
    for name, image in images.file.images.items():
        base = images.base(name)
        made = "built on" if images.is_built(name) else "pulled as"
        yield f"{name}: {made} {base.name}:{base.tag}"
        if image.base in images.replaced:
            yield f"  base: replaced with the local image {images.replaced[image.base]}"
        elif base.digest:
            yield f"  base: {base.digest}, from {base.evidence} ({base.date})"
        else:
            yield f"  base: no digest is known ({base.evidence}); locked at its first pull"
        for source in image.sources:
            yield f"  source: {source.name} {source.version}, sha256 {source.sha256}"
        for lock in image.locks:
            yield f"  packages: docker/{images.folder(name).name}/{lock}, each by hash"
        yield f"  {_presence(name, store)}"


def _presence(name: str, store: ImageStore) -> str:
    record = store.record(name)
    if record is None:
        return "not present: python -m harness build " + name
    found = store.present(record.reference)
    if found is None:
        return f"{record.reference}: no longer present"
    if found != record.id:
        return f"{record.reference}: {found}, which is NOT the verified {record.id}"
    return f"{record.reference}: present, verified, {record.id} ({record.base.how})"


def describe_record(record: ImageRecord) -> Iterator[str]:
    """Yield what was prepared: its id, size, base, and how long each step took."""
    yield f"{record.image}: {record.reference}, {record.id}, {record.size_bytes / 1e9:.2f} GB"
    yield f"  base: {record.base.reference} ({record.base.how})"
    for step in record.steps:
        took = "cached" if step.cached else duration(step.seconds)
        yield f"  {took:>12}  {step.text}"
    if record.steps:
        yield f"  {duration(record.seconds):>12}  in total"
