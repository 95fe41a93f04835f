"""Files that the pinned release and the driver really wrote, read to the digit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.results.bench import read_bench_file
from harness.results.measurement import from_bench, read_batch
from tests.conftest import RESOURCES

RECORDED = RESOURCES / "recorded"
DECODE = RECORDED / "vllm-0.31.0-bench-1k-1k-c2.json"
PREFILL = RECORDED / "vllm-0.31.0-bench-8k-1-c4.json"
DRIVER = RECORDED / "driver-8k-1-c4.json"


def test_bench_file_of_a_decode_cell() -> None:
    found, raw = from_bench(read_bench_file(DECODE)), json.loads(DECODE.read_text())
    assert (found.completed, found.failed) == (2, 0)
    assert found.input_lens == (1024, 1024)
    assert found.output_lens == (1024, 1024)
    assert found.output_throughput == raw["output_throughput"]
    assert found.input_throughput == pytest.approx(2048 / raw["duration"])
    assert found.mean_tpot_ms == raw["mean_tpot_ms"]
    assert found.metric("total_throughput") == raw["total_token_throughput"]


def test_one_output_token_has_no_tpot() -> None:
    assert from_bench(read_bench_file(PREFILL)).mean_tpot_ms is None
    assert read_batch(DRIVER).mean_tpot_ms is None


def test_driver_file_is_computed_from_its_requests() -> None:
    found, raw = read_batch(DRIVER), json.loads(DRIVER.read_text())
    requests = raw["requests"]
    first = min(each["start_s"] for each in requests)
    last = max(each["token_times_s"][-1] for each in requests)
    assert found.duration_s == last - first
    assert found.input_throughput == pytest.approx(4 * 8192 / (last - first))
    assert found.output_throughput == pytest.approx(4 / (last - first))
    ttfts = [each["token_times_s"][0] - each["start_s"] for each in requests]
    assert found.mean_ttft_ms == pytest.approx(250 * sum(ttfts))


def test_driver_tpot_is_the_mean_of_each_requests_own(tmp_path: Path) -> None:
    steps = ([0.0, 0.1, 0.2], [0.0, 0.4])
    record = {
        "duration_s": 1.0,
        "requests": [
            {
                "index": index,
                "start_s": 0.0,
                "token_times_s": times,
                "prompt_tokens": 5,
                "output_tokens": len(times),
                "finish_reason": "length",
            }
            for index, times in enumerate(steps)
        ],
    }
    path = tmp_path / "result.json"
    path.write_text(json.dumps(record))
    assert read_batch(path).mean_tpot_ms == pytest.approx((100 + 400) / 2)


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", '{"duration": 0}', "not json"])
def test_what_is_no_result_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bench.json"
    path.write_text(text)
    with pytest.raises(UsageError, match="not one result of vllm bench serve"):
        read_bench_file(path)
    with pytest.raises(UsageError, match="as one result"):
        read_batch(path)
