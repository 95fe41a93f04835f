"""The record of one wave in an in-process engine, as `harness.inside.merge` writes it.

Its types are held when it is read; what contradicts itself in it is told by `contradictions`, one
sentence each, for whoever judges the cell.
"""

from __future__ import annotations

import json
import math
import shlex
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from harness.errors import UsageError
from harness.reading import RESULT_LIMIT, read_text

Count = Annotated[int, Field(strict=True, ge=0, le=10**12)]
Seconds = Annotated[float, Field(strict=True, ge=-1e9, le=1e9)]

SAME_S = 1e-6
"""Times that are differences of the same stamps differ by their rounding alone."""


class _Read(BaseModel):
    """Files of other programs: what is used must be there and of its type; the rest may be."""

    model_config = ConfigDict(extra="ignore", frozen=True, allow_inf_nan=False)


class Request(_Read):
    """One request; times in seconds from the wave's beginning, None where tokens have none."""

    index: Count
    rank: Count | None = None
    """Which rank served it; where a record does not say, its ranks are held to their sums."""
    start_s: Seconds
    first_token_s: Seconds | None
    last_token_s: Seconds | None
    prompt_tokens: Count
    output_tokens: Count
    finish_reason: str
    drafted: Count
    accepted: Count
    drafting_steps: Count


class Rank(_Read):
    """What one rank served in all."""

    rank: Count
    start_s: Seconds
    end_s: Seconds
    requests: Count
    output_tokens: Count
    preempted: Count = 0
    engine_steps: Count | None = None


class Batch(_Read):
    """One wave."""

    duration_s: Seconds
    ids_sha256: str
    ranks: Annotated[tuple[Rank, ...], Field(min_length=1)]
    requests: Annotated[tuple[Request, ...], Field(min_length=1)]


def read_batch_record(path: Path) -> Batch:
    """Read ``path``.

    Raises:
        UsageError: it cannot be read, or is not such a record.
    """
    text = read_text(path, limit=RESULT_LIMIT)
    try:
        return Batch.model_validate(json.loads(text, object_pairs_hook=_unique))
    except (ValueError, RecursionError) as error:
        detail = str(error)
        if isinstance(error, ValidationError):
            first = error.errors(include_url=False, include_input=False)[0]
            detail = f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}"
        raise UsageError(
            f"cannot read {path} as one result: {detail}",
            usually="the program was killed while writing, or another program wrote the file",
            next_step=f"inspect the file: {shlex.join(('less', str(path)))}",
        ) from error


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        twice, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        msg = f"duplicate key {twice[:40]}"
        raise ValueError(msg)
    return found


def contradictions(batch: Batch) -> Iterator[str]:
    """Yield a sentence for each kind of thing that cannot be true, with the first of its kind."""
    indices = sorted(each.index for each in batch.requests)
    if indices != list(range(len(indices))):
        yield f"the requests' indices are not 0 to {len(indices) - 1}, each once"
    kinds: dict[str, str] = {}
    for request in batch.requests:
        for kind, sentence in _of_request(request, batch.duration_s):
            kinds.setdefault(kind, f"request {request.index} {sentence}")
    yield from kinds.values()
    stamped = sum(each.first_token_s is not None for each in batch.requests)
    if stamped not in (0, len(batch.requests)):
        yield f"{stamped} of {len(batch.requests)} requests have token times"
    yield from _ranks(batch)


def _of_request(request: Request, duration_s: float) -> Iterator[tuple[str, str]]:
    """Yield what one request contradicts itself in: the kind, and what follows its name."""
    if request.finish_reason != "length":
        yield "ended", f"ended with {request.finish_reason[:40]!r}, not by its length"
    for kind, tokens in (("prompt", request.prompt_tokens), ("output", request.output_tokens)):
        if tokens < 1:
            yield kind, f"has no {kind} token"
    if request.accepted > request.drafted:
        yield "accepted", f"accepted {request.accepted} of {request.drafted} drafted tokens"
    if request.drafting_steps > request.drafted:
        yield "steps", f"drafted {request.drafted} tokens in {request.drafting_steps} steps"
    if request.drafted and not request.drafting_steps:
        yield "steps", f"drafted {request.drafted} tokens in no step"
    first, last = request.first_token_s, request.last_token_s
    if (first is None) != (last is None):
        yield "stamps", "has the time of its first or its last token alone"
    times = [request.start_s, *(each for each in (first, last) if each is not None)]
    if times != sorted(times):
        yield "order", f"has its start, first and last token at {_written(times)} s"
    if min(times) < -SAME_S or max(times) > duration_s + SAME_S:
        yield "outside", f"was served at {_written(times)} s of a wave of {duration_s:.6g} s"
    if first == request.start_s:
        yield "instant", f"has its first token the moment it starts, at {first:.6g} s"


def _ranks(batch: Batch) -> Iterator[str]:
    ranks = sorted(each.rank for each in batch.ranks)
    if ranks != list(range(len(ranks))):
        yield f"the ranks are not 0 to {len(ranks) - 1}, each once"
    for name, total in (
        ("requests", len(batch.requests)),
        ("output_tokens", sum(each.output_tokens for each in batch.requests)),
    ):
        counted = sum(getattr(each, name) for each in batch.ranks)
        if counted != total:
            yield f"the ranks count {counted} {name.replace('_', ' ')}, but {total} are recorded"
    if all(each.rank is not None for each in batch.requests):
        yield from _own(batch)
    busy = [each for each in batch.ranks if each.requests] or list(batch.ranks)
    began, ended = min(each.start_s for each in busy), max(each.end_s for each in busy)
    late = [each for each in busy if each.end_s <= each.start_s]
    if late:
        yield f"rank {late[0].rank} ends at {late[0].end_s:.6g} s, when it has not started yet"
    if batch.duration_s <= 0:
        yield f"a duration of {batch.duration_s:.6g} s, which no request can have taken"
    elif not (
        math.isclose(began, 0.0, abs_tol=SAME_S)
        and math.isclose(ended, batch.duration_s, rel_tol=SAME_S, abs_tol=SAME_S)
    ):
        yield (
            f"a duration of {batch.duration_s:.6g} s, but the ranks served from {began:.6g} to "
            f"{ended:.6g} s"
        )


def _own(batch: Batch) -> Iterator[str]:
    """Yield what each rank counts otherwise than the requests that it served."""
    requests = Counter(each.rank for each in batch.requests)
    tokens: Counter[int | None] = Counter()
    for each in batch.requests:
        tokens[each.rank] += each.output_tokens
    there = {each.rank for each in batch.ranks}
    if strangers := [each for each in requests if each not in there]:
        yield f"requests were served by rank {strangers[0]}, which is not there"
    for rank in batch.ranks:
        counts = (rank.requests, rank.output_tokens)
        found = (requests[rank.rank], tokens[rank.rank])
        if counts != found:
            yield (
                f"rank {rank.rank} counts {counts[0]} requests and {counts[1]} output tokens, but "
                f"{found[0]} and {found[1]} are recorded of it"
            )


def _written(times: list[float]) -> str:
    return ", ".join(f"{each:.6g}" for each in times)
