"""What to know before a number is quoted: how it is defined, and what it does not say."""

from __future__ import annotations

from collections.abc import Iterator

from harness.document import Bullets, Code, Line, Section, prose
from harness.report import images, in_process
from harness.results.collect import Results
from harness.suite.plan import Plan


def before_quoting(results: Results) -> Section:
    """Return what holds for every suite, then for this run's images and engines, then its own."""
    plan = results.plan
    notes = (
        *_definitions(plan),
        *images.notes(results),
        *in_process.notes(results),
        *map(prose, plan.notes),
    )
    return Section("What to know before quoting this", (Bullets(notes),))


def _definitions(plan: Plan) -> Iterator[Line]:
    if plan.notice:
        yield plan.notice
    if plan.repeats == 1:
        yield "Each cell was measured once, in one engine session: no interval can be given."
    else:
        yield (
            f"Numbers are means of {plan.repeats} repeats within one engine session, which share "
            "what was tuned at its start: no interval follows from them."
        )
    yield (
        (
            "Throughputs are of whole waves, ramp and tail included: tokens divided by the time "
            "from the first request to the last token, as "
        ),
        Code("vllm bench serve"),
        " counts.",
    )
    yield (
        "TPOT is the mean over requests of (last token - first token) / (tokens - 1); with one "
        "output token per request there is none."
    )
    yield _warmup(plan)
    yield "No temperature is sent; every engine takes the model's own generation config."


def _warmup(plan: Plan) -> str:
    most = plan.warmup.max_output_len
    cut = f", at most {most:,} output tokens" if most else ""
    requests = (
        f"{plan.warmup.prompts} discarded requests" if plan.warmup.prompts else "a discarded wave"
    )
    return (
        f"Before its cells each session served {requests} for each shape, with other "
        f"prompts{cut}. Prefix caching is off."
    )
