"""Files that the pinned release and the driver really wrote, read to the digit."""

from __future__ import annotations

import json
import statistics
from pathlib import Path

import numpy as np
import pytest

from harness.errors import UsageError
from harness.metrics import METRICS
from harness.results.bench import read_bench_file
from harness.results.measurement import from_bench, read_batch
from tests.conftest import RESOURCES

RECORDED = RESOURCES / "recorded"
DECODE = RECORDED / "vllm-0.31.0-bench-1k-1k-c2.json"
PREFILL = RECORDED / "vllm-0.31.0-bench-8k-1-c4.json"
IN_PROCESS = RECORDED / "in-process-8k-1-c4.json"


def test_bench_file_of_a_decode_cell() -> None:
    found, raw = from_bench(read_bench_file(DECODE)), json.loads(DECODE.read_text())
    assert (found.completed, found.failed) == (2, 0)
    assert found.input_lens == (1024, 1024)
    assert found.output_lens == (1024, 1024)
    assert found.metric("output_throughput") == raw["output_throughput"]
    assert found.metric("input_throughput") == pytest.approx(2048 / raw["duration"])
    assert found.metric("mean_tpot_ms") == raw["mean_tpot_ms"]
    assert found.metric("total_throughput") == raw["total_token_throughput"]


def test_every_latency_that_the_client_is_asked_for_is_a_metric() -> None:
    found, raw = from_bench(read_bench_file(DECODE)), json.loads(DECODE.read_text())
    written = {
        key
        for key in raw
        if key.endswith(("_ttft_ms", "_tpot_ms", "_itl_ms", "_e2el_ms")) and "std" not in key
    }
    assert written == {name for name in METRICS.names if name.endswith("_ms")}
    assert {name: found.metric(name) for name in written} == {name: raw[name] for name in written}


def test_one_output_token_has_no_tpot() -> None:
    assert from_bench(read_bench_file(PREFILL)).metric("mean_tpot_ms") is None
    assert read_batch(IN_PROCESS).metric("mean_tpot_ms") is None


def test_in_process_file_is_computed_from_its_requests() -> None:
    found, raw = read_batch(IN_PROCESS), json.loads(IN_PROCESS.read_text())
    requests = raw["requests"]
    first = min(each["start_s"] for each in requests)
    last = max(each["last_token_s"] for each in requests)
    assert found.duration_s == last - first
    assert found.metric("input_throughput") == pytest.approx(4 * 8192 / (last - first))
    assert found.metric("output_throughput") == pytest.approx(4 / (last - first))
    ttfts = [each["first_token_s"] - each["start_s"] for each in requests]
    assert found.metric("mean_ttft_ms") == pytest.approx(250 * sum(ttfts))
    assert found.metric("median_ttft_ms") == pytest.approx(1e3 * statistics.median(ttfts))
    assert found.metric("p99_e2el_ms") == pytest.approx(1e3 * np.percentile(ttfts, 99))
    assert found.metric("p99_itl_ms") is None
    assert found.ids_sha256 == raw["ids_sha256"]
    assert [(share.rank, share.requests) for share in found.ranks] == [(0, 2), (1, 2)]


def record(**changes: object) -> dict[str, object]:
    """Return one request as a rank records it."""
    plain = {"index": 0, "rank": 0, "start_s": 0.0, "first_token_s": 0.0, "last_token_s": 0.2,
             "prompt_tokens": 5, "output_tokens": 3, "finish_reason": "length",
             "drafted": 0, "accepted": 0, "drafting_steps": 0}  # fmt: skip
    return {**plain, **changes}


def batch(tmp_path: Path, *requests: dict[str, object]) -> Path:
    rank = {"rank": 0, "start_s": 0.0, "end_s": 1.0, "requests": len(requests), "output_tokens": 5}
    path = tmp_path / "result.json"
    whole = {"duration_s": 1.0, "ids_sha256": "00", "ranks": [rank], "requests": requests}
    path.write_text(json.dumps(whole))
    return path


def test_tpot_is_the_mean_of_each_requests_own(tmp_path: Path) -> None:
    path = batch(tmp_path, record(), record(index=1, last_token_s=0.4, output_tokens=2))
    assert read_batch(path).metric("mean_tpot_ms") == pytest.approx((100 + 400) / 2)


def test_without_token_times_only_throughputs_are_measured(tmp_path: Path) -> None:
    path = batch(tmp_path, record(first_token_s=None, last_token_s=None))
    found = read_batch(path)
    assert (found.metric("mean_ttft_ms"), found.metric("mean_tpot_ms")) == (None, None)
    assert found.metric("output_throughput") == pytest.approx(3 / 1.0)


def test_acceptance_counts_drafts_and_steps(tmp_path: Path) -> None:
    path = batch(tmp_path, record(drafted=10, accepted=3, drafting_steps=2), record(index=1))
    found = read_batch(path)
    assert found.metric("acceptance_percent") == pytest.approx(30)
    assert found.acceptance_length == pytest.approx(1 + 3 / 2)


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", '{"duration": 0}', "not json"])
def test_what_is_no_result_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bench.json"
    path.write_text(text)
    with pytest.raises(UsageError, match="not one result of vllm bench serve"):
        read_bench_file(path)
    with pytest.raises(UsageError, match="as one result"):
        read_batch(path)
