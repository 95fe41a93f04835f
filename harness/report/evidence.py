"""The evidence of a report: every cell, engine start, prompt set, setting and version."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import PurePosixPath

from pydantic import JsonValue

from harness.clock import duration
from harness.document import (
    DASH,
    Block,
    Code,
    CodeBlock,
    Inline,
    Line,
    Link,
    Paragraph,
    Section,
    Table,
)
from harness.report.tables import number
from harness.results.collect import CellResult, Results
from harness.results.records import SessionRecord
from harness.settings.base import EngineSettings
from harness.settings.registry import SETTINGS
from harness.suite.plan import WARMUP, Session

SHOWN = (
    "output_throughput",
    "total_throughput",
    "input_throughput",
    "mean_ttft_ms",
    "mean_tpot_ms",
)


def cells(results: Results) -> Section | None:
    """Return every measured cell with all its numbers."""
    header = ("cell", "output tok/s", "total tok/s", "input tok/s", "TTFT", "TPOT", "wave")
    rows = tuple(_cell_row(each) for each in results.cells if each.measurement)
    return Section("Every cell", (Table(header, rows),)) if rows else None


def _cell_row(each: CellResult) -> tuple[Line, ...]:
    found = each.measurement
    assert found is not None
    return (
        Link(each.cell.id, each.file or each.cell.folder),
        *(
            number(value, name) if (value := found.metric(name)) is not None else DASH
            for name in SHOWN
        ),
        f"{found.duration_s:.1f} s",
    )


def sessions(results: Results) -> Section | None:
    """Return every engine start, its warm-ups and its command."""
    if not results.sessions:
        return None
    header = ("session", "engine", "ready after", "discarded warm-ups", "tokenization checked")
    engines = {each.recipe: SETTINGS[each.engine] for each in results.plan.sessions}
    rows = tuple(_session_row(each, engines[each.recipe]) for each in results.sessions)
    blocks: list[Block] = [Table(header, rows)]
    for record in results.sessions:
        blocks += [
            Paragraph(f"{record.recipe} {record.number}:"),
            CodeBlock(record.command, "sh"),
        ]
        said = record.startup.get("said")
        if isinstance(said, list) and said:
            blocks.append(CodeBlock("\n".join(map(str, said)), "text"))
    client = next(
        (each.record.command for each in results.cells if each.record and each.record.command), ""
    )
    if client:
        blocks += [
            Paragraph("Command of the first cell's client or driver:"),
            CodeBlock(client, "sh"),
        ]
    return Section("Engine sessions", tuple(blocks))


def _session_row(record: SessionRecord, engine: EngineSettings) -> tuple[Line, ...]:
    ready, checked = record.startup.get("ready_after_s"), record.tokenize_checked
    warmups: list[Inline] = []
    for name in record.warmups:
        warmups += [", ", Link(_shape(name), f"{record.folder}/{name}")]
    return (
        Link(f"{record.recipe} {record.number}", f"{record.folder}/"),
        f"{engine.product} {record.startup.get('version') or ''}".strip(),
        f"{ready} s" if ready is not None else DASH,
        tuple(warmups[1:]),
        f"{checked} prompts" if checked is not None else _unchecked(engine),
    )


def _unchecked(engine: EngineSettings) -> str:
    return "not checked: no endpoint for it" if engine.served else "given the ids themselves"


def _shape(warmup: str) -> str:
    """Shorten ``warmup/warmup-8k-1k.json`` to the shape."""
    return PurePosixPath(warmup).stem.removeprefix(f"{WARMUP}-")


def prompts(results: Results) -> Section | None:
    """Return every request set whose prompts were made, with their hash."""
    rows = tuple(
        (
            Link(request_set.name, request_set.manifest_file),
            str(request_set.seed),
            f"{manifest.count} x {request_set.input_len:,}",
            Code(manifest.sha256[:16]),
            manifest.made_by,
        )
        for request_set in results.plan.request_sets
        if (manifest := results.manifest(request_set)) is not None
    )
    if not rows:
        return None
    header = ("prompts", "seed", "requests x tokens", "sha256 of ids", "made by")
    text = (
        "Every engine was given these token ids: a server as text from the same generator and "
        "seed, checked through its own /tokenize, an in-process engine as ids."
    )
    return Section("Prompts, the same for every engine", (Paragraph(text), Table(header, rows)))


def settings(results: Results) -> Section:
    """Return every setting of every recipe with its reason."""
    blocks: list[Block] = []
    for session in results.plan.sessions:
        rows = tuple(
            (Code(f"{name} {_value(value)}".strip()), session.why[name])
            for name, value in _settings_of(session).items()
        )
        blocks += [Paragraph(f"{session.title}:"), Table(("setting", "why"), rows)]
    return Section("Settings and their reasons", tuple(blocks))


def _settings_of(session: Session) -> dict[str, JsonValue]:
    """Return all that a recipe sets: arguments, environment, drive mode, and what it grants."""
    granted = session.container.settings() if session.container else {}
    driven: dict[str, JsonValue] = {"drive": session.drive} if session.drive else {}
    replicas: dict[str, JsonValue] = {"ranks": session.ranks} if "ranks" in session.why else {}
    return {
        **session.args,
        **session.env,
        **driven,
        **replicas,
        **{f"container.{name}": value for name, value in granted.items()},
    }


def _value(value: object) -> str:
    return "" if value is True else value if isinstance(value, str) else json.dumps(value)


def versions(results: Results) -> Section:
    """Return versions, pins and what the host is."""
    record = results.record
    took = _took(record.began, record.ended)
    rows: list[tuple[Line, ...]] = [
        ("kit", f"{record.kit_version}{commit(record.kit_commit)}"),
        ("plan", Code(record.plan_hash)),
        ("runtime", results.plan.runtime),
        ("run", (Link(record.run, "run.json"), f", took {took}")),
    ]
    for image, evidence in record.images.items():
        rows.append((f"image {image}", ("pin ", Code(results.plan.pins[image][:16]))))
        torch = evidence.get("torch")
        for item in torch if isinstance(torch, list) else []:
            if isinstance(item, dict) and item.get("name") == "torch":
                file, sha256 = Code(str(item["file"])), Code(str(item["sha256"])[:16])
                rows.append(("torch", (file, " ", sha256)))
    rows += [("host", Link(PurePosixPath(file).name, file)) for file in results.host_files]
    return Section("Versions and raw files", (Table(("item", "value"), tuple(rows)),))


def commit(name: str | None) -> str:
    """Write the kit's commit after its version, if it is known."""
    return f" ({name})" if name else ""


def _took(began: str, ended: str | None) -> str:
    if ended is None:
        return DASH
    seconds = datetime.fromisoformat(ended) - datetime.fromisoformat(began)
    return duration(seconds.total_seconds())
