"""What an in-process engine's record contradicts itself in."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.errors import UsageError
from harness.results.cell_rules import batch_rules
from harness.results.measurement import read_batch
from harness.suite.plan import RequestSet
from tests.conftest import RESOURCES

RECORDED = RESOURCES / "recorded" / "in-process-8k-1-c4.json"
REQUESTS = RequestSet(
    input_len=8192, output_len=1, concurrency=4, prompts=4, seed=0, name="8k-1-c4"
)

Change = Callable[[dict[str, Any]], object]


def broken(tmp_path: Path, change: Change, window_s: float | None = None) -> list[str]:
    record = json.loads(RECORDED.read_text())
    change(record)
    path = tmp_path / "result.json"
    path.write_text(json.dumps(record))
    return list(batch_rules(read_batch(path), REQUESTS, None, window_s))


def request(place: int = 1, **values: object) -> Change:
    return lambda record: record["requests"][place].update(values)


def rank(place: int = 1, **values: object) -> Change:
    return lambda record: record["ranks"][place].update(values)


def test_what_the_driver_really_wrote_is_whole(tmp_path: Path) -> None:
    assert broken(tmp_path, lambda record: record) == []
    assert broken(tmp_path, lambda record: record["requests"].reverse()) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (request(index=2), "the requests' indices are not 0 to 3, each once"),
        (request(index=7), "the requests' indices are not 0 to 3, each once"),
        (request(finish_reason="stop"), "request 1 ended with 'stop', not by its length"),
        (request(finish_reason=""), "request 1 ended with '', not by its length"),
        (request(output_tokens=0), "request 1 has no output token"),
        (request(prompt_tokens=0), "request 1 has no prompt token"),
        (request(drafted=2, accepted=3, drafting_steps=1), "request 1 accepted 3 of 2 drafted"),
        (request(drafted=2, drafting_steps=0), "request 1 drafted 2 tokens in no step"),
        (request(drafting_steps=2), "request 1 drafted 0 tokens in 2 steps"),
        (request(start_s=3.0), "request 1 has its start, first and last token at 3, 2.3"),
        (request(last_token_s=1.0), "request 1 has its start, first and last token at 0.00"),
        (request(last_token_s=9.0), "s of a wave of 5.07095 s"),
        (request(start_s=-1.0), "request 1 was served at -1, "),
        (request(start_s=1.0, first_token_s=1.0), "request 1 has its first token the moment"),
        (request(first_token_s=None), "request 1 has the time of its first or its last token"),
        (request(first_token_s=None, last_token_s=None), "3 of 4 requests have token times"),
        (
            request(rank=0),
            "rank 0 counts 2 requests and 2 output tokens, but 3 and 3 are recorded of it",
        ),
        (request(rank=8), "requests were served by rank 8, which is not there"),
        (rank(rank=0), "the ranks are not 0 to 1, each once"),
        (rank(requests=3), "the ranks count 5 requests, but 4 are recorded"),
        (rank(output_tokens=9), "the ranks count 11 output tokens, but 4 are recorded"),
        (rank(0, end_s=4.9), "a duration of 5.07095 s, but the ranks served from 0 to 4.9 s"),
        (rank(end_s=0.0), "rank 1 ends at 0 s, when it has not started yet"),
        (lambda record: record.update(duration_s=0.0), "a duration of 0 s, which no request"),
        (lambda record: record.update(duration_s=50.7), "a duration of 50.7 s, but the ranks"),
        (lambda record: record["requests"].pop(), "the ranks count 4 requests, but 3 are recorded"),
    ],
)
def test_a_contradiction_is_one_sentence(change: Change, message: str, tmp_path: Path) -> None:
    assert any(message in each for each in broken(tmp_path, change))


def test_a_wave_lies_within_the_cells_own_time(tmp_path: Path) -> None:
    assert broken(tmp_path, lambda record: record, window_s=6.0) == []
    (only,) = broken(tmp_path, lambda record: record, window_s=3.0)
    assert only.endswith("within 3 s by the kit's own clock")


@pytest.mark.parametrize(
    "change",
    [
        request(index=True), request(output_tokens="1"), request(output_tokens=1.5),
        request(prompt_tokens=-1), request(start_s="0"), request(start_s=10**400),
        request(drafted=10**13), rank(end_s=None), rank(requests=[]),
        lambda record: record.update(duration_s=float("nan")),
        lambda record: record.update(duration_s=float("inf")),
        lambda record: record.update(requests=[]), lambda record: record.update(ranks={}),
    ],
)  # fmt: skip
def test_what_is_no_number_of_a_record_is_refused(change: Change, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="as one result"):
        broken(tmp_path, change)


def test_a_key_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text('{"duration_s": 1.0, "duration_s": 2.0}')
    with pytest.raises(UsageError, match="duplicate key duration_s"):
        read_batch(path)
