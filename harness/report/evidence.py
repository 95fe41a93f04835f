"""The evidence of a report: every cell, engine start, prompt set, setting and version."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import PurePosixPath

from pydantic import JsonValue

from harness.clock import duration
from harness.report.markdown import DASH, code, escape, link, table
from harness.report.tables import number
from harness.results.collect import CellResult, Results
from harness.suite.model import Metric
from harness.suite.plan import WARMUP, Session

TIMES: tuple[Metric, ...] = ("mean_ttft_ms", "mean_tpot_ms")


def cells(results: Results) -> str:
    """Return every measured cell with all its numbers."""
    header = ["cell", "output tok/s", "total tok/s", "input tok/s", "TTFT", "TPOT", "wave"]
    rows = [_cell_row(each) for each in results.cells if each.measurement]
    return "## Every cell\n\n" + table(header, rows) if rows else ""


def _cell_row(each: CellResult) -> list[str]:
    found = each.measurement
    assert found is not None
    return [
        link(each.cell.id, each.file or each.cell.folder),
        number(found.output_throughput, "output_throughput"),
        number(found.total_throughput, "total_throughput"),
        number(found.input_throughput, "input_throughput"),
        *(
            number(value, name) if (value := found.metric(name)) is not None else DASH
            for name in TIMES
        ),
        f"{found.duration_s:.1f} s",
    ]


def sessions(results: Results) -> str:
    """Return every engine start, its warm-ups and its command."""
    rows, commands = [], []
    for record in results.sessions:
        folder = record.folder
        ready = record.startup.get("ready_after_s")
        checked = record.tokenize_checked
        rows.append(
            [
                link(f"{record.recipe} {record.number}", f"{folder}/"),
                escape(f"{record.startup.get('engine', 'vllm')} {record.startup.get('version')}"),
                f"{ready} s" if ready is not None else DASH,
                ", ".join(link(_shape(name), f"{folder}/{name}") for name in record.warmups),
                f"{checked} prompts" if checked is not None else "got the ids themselves",
            ]
        )
        commands.append(f"{record.recipe} {record.number}:\n\n```sh\n{record.command}\n```")
    if not rows:
        return ""
    header = ["session", "engine", "ready after", "discarded warm-ups", "same tokens checked"]
    client = next(
        (each.record.command for each in results.cells if each.record and each.record.command), ""
    )
    return "\n\n".join(
        ["## Engine sessions", table(header, rows), *commands]
        + ([f"The first cell's client or driver:\n\n```sh\n{client}\n```"] if client else [])
    )


def _shape(warmup: str) -> str:
    """Shorten ``warmup/warmup-8k-1k.json`` to the shape."""
    return PurePosixPath(warmup).stem.removeprefix(f"{WARMUP}-")


def prompts(results: Results) -> str:
    """Return every set of prompts with its hash."""
    rows = []
    for request_set in results.plan.request_sets:
        manifest = results.manifest(request_set)
        if manifest is None:
            continue
        rows.append(
            [
                link(request_set.name, request_set.manifest_file),
                str(request_set.seed),
                f"{manifest.count} x {request_set.input_len:,}",
                code(manifest.sha256[:16]),
                escape(manifest.made_by),
            ]
        )
    if not rows:
        return ""
    header = ["prompts", "seed", "requests x tokens", "sha256 of ids", "made by"]
    text = (
        "Every engine got these token ids: the server as text from the same generator and seed, "
        "checked through its own /tokenize, and the in-process engine as ids."
    )
    return f"## The same prompts\n\n{text}\n\n{table(header, rows)}"


def settings(results: Results) -> str:
    """Return every setting of every recipe with its reason."""
    parts = ["## Settings and their reasons"]
    for session in results.plan.sessions:
        rows = [
            [code(f"{name} {_value(value)}".strip()), escape(session.why[name])]
            for name, value in _settings_of(session).items()
        ]
        parts += [f"{escape(session.title)}:", table(["setting", "why"], rows)]
    return "\n\n".join(parts)


def _settings_of(session: Session) -> dict[str, JsonValue]:
    """Return all that a recipe sets: arguments, environment, driving, and what it grants."""
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


def versions(results: Results) -> str:
    """Return versions, pins and what the host is."""
    record = results.record
    rows = [
        ["kit", f"{record.kit_version}{commit(record.kit_commit)}"],
        ["plan", code(record.plan_hash)],
        ["runtime", escape(results.plan.runtime)],
        [
            "run",
            f"{link(escape(record.run), 'run.json')}, took {_took(record.began, record.ended)}",
        ],
    ]
    for image, evidence in record.images.items():
        rows.append([f"image {escape(image)}", f"locks {code(results.plan.pins[image][:16])}"])
        torch = evidence.get("torch")
        for item in torch if isinstance(torch, list) else []:
            if isinstance(item, dict) and item.get("name") == "torch":
                rows.append(
                    ["torch", f"{code(str(item['file']))} {code(str(item['sha256'])[:16])}"]
                )
    rows += [["host", link(PurePosixPath(file).name, file)] for file in results.host_files]
    return "## Versions and raw files\n\n" + table(["what", "which"], rows)


def commit(name: str | None) -> str:
    """Write the kit's commit behind its version, where it is known."""
    return f" ({name})" if name else ""


def _took(began: str, ended: str | None) -> str:
    if ended is None:
        return DASH
    seconds = datetime.fromisoformat(ended) - datetime.fromisoformat(began)
    return duration(seconds.total_seconds())
