"""report.md: the answer first, then the tables, then what a stranger needs to check them.

A pure function of the run directory's files: the same files give the same report, on any machine.
"""

from __future__ import annotations

from datetime import datetime

from harness.files import write_text
from harness.report import compared, evidence, images, in_process
from harness.report.markdown import DASH, code, escape, link, table
from harness.report.tables import fill
from harness.results.collect import Results, collect
from harness.results.run_directory import RunDirectory
from harness.results.verdict import Judgement, judge


def write_report(directory: RunDirectory) -> Results:
    """Write report.md and tables/ from the run's files; return what was read."""
    results = collect(directory)
    for wanted in results.plan.tables:
        text = fill(wanted, results.plan.workloads, results).markdown
        write_text(directory.path / "tables" / f"{wanted.id}.md", text + "\n")
    write_text(directory.report, render(results))
    return results


def render(results: Results) -> str:
    """Return the report's text."""
    reference, judged = results.reference, judge(results)
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
        in_process.driving(results),
        evidence.cells(results),
        in_process.ranks(results),
        evidence.sessions(results),
        evidence.prompts(results),
        evidence.settings(results),
        images.images(results),
        evidence.versions(results),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def _head(results: Results, judged: list[Judgement]) -> str:
    record, plan = results.record, results.plan
    verdict = "measured" if results.complete else "incomplete"
    lines = [f"# {escape(plan.title)}: {verdict}", ""]
    if plan.notice:
        lines += [f"> **{escape(plan.notice)}**", ""]
    sessions = f"{len(plan.sessions)} engine sessions" if len(plan.sessions) > 1 else "one session"
    lines += [
        (
            f"**{results.measured} of {len(results.cells)} cells measured** in {sessions} on host "
            f"{code(record.host)} ({escape(record.host_summary)}), {_day(record.began)}, "
            f"with kit {record.kit_version}{evidence.commit(record.kit_commit)}."
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
    notes += [*images.notes(results), *in_process.notes(results), *plan.notes]
    body = "\n".join(f"- {note}" for note in notes)
    return f"## What to know before quoting this\n\n{body}"


def _day(moment: str) -> str:
    return datetime.fromisoformat(moment).strftime("%Y-%m-%d %H:%M UTC")
