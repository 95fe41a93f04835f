"""report.md: the answer first, then the tables, then what a stranger needs to check them.

A pure function of the run directory's files: the same files give the same report, on any machine.
"""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import PurePosixPath

from harness.clock import duration
from harness.files import write_text
from harness.report import compared
from harness.report.markdown import DASH, code, escape, link, table
from harness.report.tables import fill, number
from harness.results.collect import CellResult, Results, collect
from harness.results.records import SessionRecord
from harness.results.run_directory import RunDirectory, read_record
from harness.results.verdict import Judged, Reference, judge
from harness.suite.plan import WARMUP


def write_report(directory: RunDirectory) -> Results:
    """Write report.md and tables/ from the run's files; return what was read."""
    results = collect(directory)
    for wanted in results.plan.tables:
        text = fill(wanted, results.plan.workloads, results).markdown
        write_text(directory.path / "tables" / f"{wanted.id}.md", text + "\n")
    write_text(directory.report, render(directory, results))
    return results


def render(directory: RunDirectory, results: Results) -> str:
    """Return the report's text."""
    reference = _reference(directory)
    judged = judge(results, reference, results.gpus) if reference else []
    sections = [
        _head(results, judged),
        *_tables(results),
        _not_measured(results),
        _before_quoting(results),
        *(
            [
                compared.verdicts(judged),
                compared.residuals(results, reference),
                compared.not_stated(reference),
            ]
            if reference
            else []
        ),
        _cells(results),
        _sessions(directory, results),
        _prompts(directory, results),
        _settings(results),
        _versions(directory, results),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def _reference(directory: RunDirectory) -> Reference | None:
    path = directory.published_file
    return read_record(path, Reference) if path.exists() else None


def _head(results: Results, judged: list[Judged]) -> str:
    record, plan = results.record, results.plan
    measured = sum(each.status == "measured" for each in results.cells)
    verdict = "measured" if results.complete else "incomplete"
    lines = [f"# {escape(plan.title)}: {verdict}", ""]
    if plan.notice:
        lines += [f"> **{escape(plan.notice)}**", ""]
    sessions = f"{len(plan.sessions)} engine sessions" if len(plan.sessions) > 1 else "one session"
    lines += [
        (
            f"**{measured} of {len(results.cells)} cells measured** in {sessions} on host "
            f"{code(record.host)} ({escape(record.host_summary)}), {_day(record.began)}, "
            f"with kit {record.kit_version}{_commit(record.kit_commit)}."
        ),
        *(["", compared.headline(judged)] if judged else []),
        "",
        (
            f"{escape(plan.about)} Each number below links to the file that it came from; "
            f"{code('python -m harness report RUN_DIRECTORY')} derives this page from them again."
        ),
    ]
    return "\n".join(lines)


def _tables(results: Results) -> list[str]:
    sections = []
    for wanted in results.plan.tables:
        filled = fill(wanted, results.plan.workloads, results, link)
        parts = [f"## {escape(wanted.title)}", "", filled.markdown]
        if wanted.note:
            parts += ["", escape(wanted.note)]
        if filled.missing:
            parts += ["", f"{DASH} not measured: " + "; ".join(map(escape, filled.missing)) + "."]
        sections.append("\n".join(parts))
    return sections


def _not_measured(results: Results) -> str:
    missing = [each for each in results.cells if each.status != "measured"]
    if not missing:
        return ""
    rows = [
        [code(each.cell.id), each.status, "; ".join(map(escape, each.reasons))] for each in missing
    ]
    return "## Cells without a number\n\n" + table(["cell", "state", "why"], rows)


def _before_quoting(results: Results) -> str:
    plan = results.plan
    most = plan.warmup.max_output_len
    cut = f", at most {most:,} output tokens" if most else ""
    requests = (
        f"{plan.warmup.prompts} discarded requests" if plan.warmup.prompts else "a discarded wave"
    )
    repeats = (
        "Each cell was measured once, in one engine session: no interval can be given."
        if plan.repeats == 1
        else f"Numbers are means of {plan.repeats} repeats within one engine session, which share "
        "what was tuned at its start: no interval follows from them."
    )
    notes = [
        *([plan.notice] if plan.notice else []),
        repeats,
        (
            "Throughputs are of whole waves, ramp and tail included: tokens divided by the time "
            "from the first request to the last token, as `vllm bench serve` counts."
        ),
        (
            "TPOT is the mean over requests of (last token - first token) / (tokens - 1); with one "
            "output token per request there is none."
        ),
        (
            f"Before its cells each session served {requests} for each shape, with other "
            f"prompts{cut}. Prefix caching is off."
        ),
        "No temperature is sent; every engine takes the model's own generation config.",
    ]
    notes += plan.notes
    body = "\n".join(f"- {note}" for note in notes)
    return f"## What to know before quoting this\n\n{body}"


def _cells(results: Results) -> str:
    header = ["cell", "output tok/s", "total tok/s", "input tok/s", "TTFT", "TPOT", "wave"]
    rows = [_cell_row(each) for each in results.cells if each.measurement]
    return "## Every cell\n\n" + table(header, rows) if rows else ""


def _cell_row(each: CellResult) -> list[str]:
    found = each.measurement
    assert found is not None
    tpot = DASH if found.mean_tpot_ms is None else number(found.mean_tpot_ms, "mean_tpot_ms")
    return [
        link(each.cell.id, each.file or each.cell.folder),
        number(found.output_throughput, "output_throughput"),
        number(found.total_throughput, "total_throughput"),
        number(found.input_throughput, "input_throughput"),
        number(found.mean_ttft_ms, "mean_ttft_ms"),
        tpot,
        f"{found.duration_s:.1f} s",
    ]


def _sessions(directory: RunDirectory, results: Results) -> str:
    rows, commands = [], []
    for path in sorted((directory.path / "sessions").glob("*/*/session.json")):
        record = read_record(path, SessionRecord)
        folder = path.parent.relative_to(directory.path).as_posix()
        ready = record.startup.get("ready_after_s")
        checked = record.tokenize_checked
        rows.append(
            [
                link(f"{record.recipe} {record.number}", f"{folder}/"),
                escape(str(record.startup.get("version") or DASH)),
                f"{ready} s" if ready is not None else DASH,
                ", ".join(link(_shape(name), f"{folder}/{name}") for name in record.warmups),
                f"{checked} prompts" if checked is not None else "got the ids themselves",
            ]
        )
        commands.append(f"{record.recipe} {record.number}:\n\n```sh\n{record.command}\n```")
    if not rows:
        return ""
    header = ["session", "vLLM", "ready after", "discarded warm-ups", "same tokens checked"]
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


def _prompts(directory: RunDirectory, results: Results) -> str:
    rows = []
    for load in results.plan.loads:
        manifest = directory.load_manifest(load)
        if manifest is None:
            continue
        rows.append(
            [
                link(load.name, load.manifest_file),
                str(load.seed),
                f"{manifest.count} x {load.input_len:,}",
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


def _settings(results: Results) -> str:
    parts = ["## Settings and their reasons"]
    for session in results.plan.sessions:
        rows = [
            [code(f"{name} {_value(value)}".strip()), escape(session.why[name])]
            for name, value in {**session.args, **session.env}.items()
        ]
        parts += [f"{escape(session.title)}:", table(["setting", "why"], rows)]
    return "\n\n".join(parts)


def _value(value: object) -> str:
    return "" if value is True else value if isinstance(value, str) else json.dumps(value)


def _versions(directory: RunDirectory, results: Results) -> str:
    record = results.record
    rows = [
        ["kit", f"{record.kit_version}{_commit(record.kit_commit)}"],
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
    for path in sorted((directory.path / "host").glob("*")):
        rows.append(["host", link(path.name, f"host/{path.name}")])
    return "## Versions and raw files\n\n" + table(["what", "which"], rows)


def _day(moment: str) -> str:
    return datetime.fromisoformat(moment).strftime("%Y-%m-%d %H:%M UTC")


def _took(began: str, ended: str | None) -> str:
    if ended is None:
        return DASH
    seconds = datetime.fromisoformat(ended) - datetime.fromisoformat(began)
    return duration(seconds.total_seconds())


def _commit(commit: str | None) -> str:
    return f" ({commit})" if commit else ""
