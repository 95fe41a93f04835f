"""What to know before quoting a number: how it is defined, and what it does not say."""

from __future__ import annotations

from collections.abc import Iterator

from harness.document import Bullets, Code, Line, Section, prose
from harness.report import images, in_process
from harness.results.collect import Results
from harness.settings.registry import SETTINGS
from harness.suite.plan import Plan


def before_quoting(results: Results) -> Section:
    """Return the notes for every suite, then for this run's images and engines, then its own."""
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
        " does.",
    )
    yield (
        "TPOT is the mean over requests of (last token - first token) / (tokens - 1); with one "
        "output token per request there is none."
    )
    yield f"{_warmup(plan)} {_prefix_caching(plan)}"
    yield f"No temperature is sent; {_sampling(plan)}."


def _warmup(plan: Plan) -> str:
    most = plan.warmup.max_output_len
    cut = f", at most {most:,} output tokens" if most else ""
    requests = (
        f"{plan.warmup.prompts} discarded requests" if plan.warmup.prompts else "a discarded wave"
    )
    return (
        f"Before its cells, each session served {requests} for each shape, with different "
        f"prompts{cut}."
    )


def _prefix_caching(plan: Plan) -> str:
    on = [each.recipe for each in plan.sessions if SETTINGS[each.engine].prefix_caching(each)]
    if not on:
        return "Prefix caching is off."
    recipes = ", ".join(dict.fromkeys(on))
    return f"Prefix caching is on for {recipes}: a prompt seen before is not computed again."


def _sampling(plan: Plan) -> str:
    taken = {each.recipe: SETTINGS[each.engine].sampling(each) for each in plan.sessions}
    if len(set(taken.values())) == 1:
        return f"every engine uses {next(iter(taken.values()))}"
    return "; ".join(f"{recipe} uses {sampling}" for recipe, sampling in taken.items())
