"""A result's totals against their parts: lengths of arrays, sums, rates, and what was drafted."""

from __future__ import annotations

import math
from collections.abc import Iterator

from harness.results.bench import BenchFile

EXACT = 1e-9
"""Relative difference between numbers that one program computed from the same values."""
ROUNDED = 0.01
"""Relative difference where a file that was written by hand or by a script may be rounded."""

OF_EACH_REQUEST = (
    "input_lens", "output_lens", "ttfts", "itls", "start_times", "generated_texts", "errors",
)  # fmt: skip
OF_COMPLETED = ("latencies", "queue_times")


def misshapen(bench: BenchFile) -> Iterator[str]:
    """Yield arrays of another length than the requests that they are of, or without their like."""
    counts = {key: {bench.num_prompts} for key in OF_EACH_REQUEST}
    # Releases differ in whether they write those of failed requests.
    counts |= {key: {bench.completed, bench.num_prompts} for key in OF_COMPLETED}
    for key, allowed in counts.items():
        values = getattr(bench, key)
        if values is not None and len(values) not in allowed:
            yield f"{key} has {len(values)} entries for {bench.num_prompts} requests"
    detailed = ("ttfts", "itls", "input_lens", "output_lens", "errors")
    if bench.ttfts is not None or bench.itls is not None:
        for key in detailed:
            if getattr(bench, key) is None:
                yield f"{key} is missing: --save-detailed writes it beside {', '.join(detailed)}"


def contradictions(bench: BenchFile) -> Iterator[str]:
    """Yield totals that are not those of their parts. Arrays have their lengths."""
    yield from _nothing_generated(bench)
    yield from _sums(bench)
    yield from _rates(bench)
    yield from _drafts(bench)


def _nothing_generated(bench: BenchFile) -> Iterator[str]:
    for kind, total, lens in (
        ("input", bench.total_input_tokens, bench.input_lens),
        ("output", bench.total_output_tokens, bench.output_lens),
    ):
        empty = sum(lens[row] < 1 for row in bench.succeeded) if lens is not None else 0
        if empty:
            yield f"{empty} of {bench.completed} completed requests have no {kind} token"
        elif total < bench.completed:
            yield f"{total} {kind} tokens in {bench.completed} requests: each has at least one"


def _sums(bench: BenchFile) -> Iterator[str]:
    for key, lens in (
        ("total_input_tokens", bench.input_lens),
        ("total_output_tokens", bench.output_lens),
    ):
        if lens is not None:
            found = sum(lens[row] for row in bench.succeeded)
            if found != getattr(bench, key):
                yield f"{key} is {getattr(bench, key)}, but its requests have {found}"


def _rates(bench: BenchFile) -> Iterator[str]:
    total = bench.total_input_tokens + bench.total_output_tokens
    for name, rate, counted, what in (
        ("output_throughput", bench.output_throughput, bench.total_output_tokens, "tokens"),
        ("total_token_throughput", bench.total_token_throughput, total, "tokens"),
        ("input_throughput", bench.input_throughput, bench.total_input_tokens, "tokens"),
        ("request_throughput", bench.request_throughput, bench.completed, "requests"),
    ):
        if rate is not None and not math.isclose(rate * bench.duration, counted, rel_tol=EXACT):
            yield (
                f"{name} {rate:.6g} x duration {bench.duration:.6g} s is "
                f"{rate * bench.duration:.6g} {what}, but the file counts {counted}"
            )
    good, all_of_them = bench.request_goodput, bench.completed / bench.duration
    if good is not None and good > all_of_them * (1 + EXACT):
        yield f"request_goodput {good:.6g} is above {all_of_them:.6g}, the rate of all requests"


def _drafts(bench: BenchFile) -> Iterator[str]:
    drafts, drafted = bench.spec_decode_num_drafts, bench.spec_decode_draft_tokens
    accepted = bench.spec_decode_accepted_tokens
    if accepted is None:
        return
    if drafted is not None and accepted > drafted:
        yield f"{accepted} drafted tokens were accepted of {drafted}"
    for key, stated, follows in (
        (
            "spec_decode_acceptance_rate",
            bench.spec_decode_acceptance_rate,
            100 * accepted / drafted if drafted else None,
        ),
        (
            "spec_decode_acceptance_length",
            bench.spec_decode_acceptance_length,
            1 + accepted / drafts if drafts else None,
        ),
    ):
        if stated is None or follows is None:
            continue
        if not math.isclose(stated, follows, rel_tol=ROUNDED, abs_tol=ROUNDED):
            yield f"{key} is {stated:.6g}, but the file's own counts give {follows:.6g}"
