"""Inputs that break result collectors, from public bug reports, each with the right answer."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.cli.main import main
from harness.errors import UsageError
from harness.results.bench import read_bench_file
from harness.results.measurement import from_bench
from harness.results.validity import Expected, check
from tests.conftest import RESOURCES

CASES = RESOURCES / "cases"
RECORDED = RESOURCES / "recorded"

VALID = [
    "ok.json",
    "ok-detailed.json",
    "bom-crlf.json",
    "other-percentiles-no-p99.json",
    "speculative-peak-below-mean.json",
    "prefill-one-output-token.json",
    "markdown-in-model-id.json",
]
INVALID = {
    "all-failed-exit-0.json": "0 of 16 requests completed, 16 failed",
    "one-failed.json": "15 of 16 requests completed, 1 failed",
    "detailed-two-failed.json": "4 of 6 requests completed, 2 failed: ClientOSError: connection",
    "bare-nan-tpot.json": "mean_tpot_ms is nan",
    "negative-tpot.json": "mean_tpot_ms is -",
    "output-tokens-not-fixed.json --output 64": "987 output tokens, expected 16 x 64 = 1024",
    "throughput-disagrees-with-duration.json": "output_throughput 1182.09 x duration 1.2994 s is",
    "completed-plus-failed-not-prompts.json": "14 requests completed and 0 failed, but 16 were",
    "another-model.json --model tiny": "the model is 'other-model-8b', not 'tiny'",
}
REFUSED = {
    "sweep-array.json": "2 records, expected one",
    "append-jsonl-colon-goodput.json": "2 records, expected one",
    "append-torn-last.json": "line 2, byte 2",
    "truncated.json": "line 1, byte 1",
    "empty.json": "the file is empty",
    "null.json": "the record is null",
    "duplicate-key-num-prompts-string.json": "duplicate key num_prompts, with",
    "another-tool-guidellm.json": "guidellm wrote this file",
    "seconds-without-unit.json": "mean_tpot, mean_ttft: a time without a unit",
    "sglang-infinity.jsonl": "sglang wrote this file",
}


def test_every_case_has_its_answer() -> None:
    named = {*VALID, *(name.split()[0] for name in INVALID), *REFUSED}
    assert named == {path.name for path in CASES.iterdir()}


@pytest.mark.parametrize("name", VALID)
def test_valid(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(CASES / name)]) == 0
    assert "not checked (not given): --model" in capsys.readouterr().out


@pytest.mark.parametrize("case", INVALID)
def test_invalid(case: str, capsys: pytest.CaptureFixture[str]) -> None:
    name, *options = case.split()
    assert main(["check", str(CASES / name), *options]) == 1
    output = capsys.readouterr().out
    assert "not a valid measurement" in output
    assert f"broken: {INVALID[case]}" in output


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(CASES / name)]) == 2
    errors = capsys.readouterr().err
    assert REFUSED[name] in errors
    assert str(CASES / name) in errors.replace("\n", "")
    assert "EXAMPLE-KEY" not in errors


@pytest.mark.parametrize("path", ["/dev/zero", "/proc", "/nowhere"])
def test_what_is_no_file_is_refused(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", path]) == 2
    assert path in capsys.readouterr().err


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"a":' * 20_000, '{"duration": ' + "9" * 6000 + "}"]
)
def test_what_breaks_parsers_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "file.json"
    path.write_text(text)
    with pytest.raises(UsageError, match="not one result of vllm bench serve"):
        read_bench_file(path)


def test_torn_file_says_what_is_usable() -> None:
    with pytest.raises(UsageError, match=r"; 1 whole record\(s\) precede it"):
        read_bench_file(CASES / "append-torn-last.json")


def test_failed_rows_are_in_no_statistic() -> None:
    bench = read_bench_file(CASES / "detailed-two-failed.json")
    assert bench.succeeded == [0, 1, 2, 3]


def test_one_output_token_has_no_tpot() -> None:
    assert (
        from_bench(read_bench_file(CASES / "prefill-one-output-token.json")).metric("mean_tpot_ms")
        is None
    )


def test_acceptance_is_a_percentage() -> None:
    bench = read_bench_file(CASES / "speculative-peak-below-mean.json")
    found = from_bench(bench).metric("acceptance_percent")
    assert found is not None
    assert 1 < found < 100


@pytest.mark.parametrize("path", sorted(RECORDED.glob("vllm-*.json")), ids=lambda path: path.name)
def test_what_the_release_really_wrote_is_valid(path: Path) -> None:
    findings = check(read_bench_file(path), Expected(model="tiny-llama"))
    assert findings.broken == []


def changed(tmp_path: Path, name: str, value: object) -> Path:
    record = json.loads((CASES / "ok-detailed.json").read_text())
    assert name in record
    record[name] = value
    path = tmp_path / "changed.json"
    path.write_text(json.dumps(record))
    return path


@pytest.mark.parametrize(
    ("name", "factor", "message"),
    [
        ("mean_tpot_ms", 1.001, "mean_tpot_ms is"),
        ("median_ttft_ms", 0.99, "median_ttft_ms is"),
        ("p99_itl_ms", 1.01, "p99_itl_ms is"),
        ("std_ttft_ms", 1.1, "std_ttft_ms is"),
        ("output_throughput", 1 + 1e-6, "output_throughput"),
        ("total_token_throughput", 1 - 1e-6, "total_token_throughput"),
    ],
)
def test_a_changed_number_is_found(tmp_path: Path, name: str, factor: float, message: str) -> None:
    record = json.loads((CASES / "ok-detailed.json").read_text())
    path = changed(tmp_path, name, record[name] * factor)
    (first, *_) = check(read_bench_file(path), Expected()).broken
    assert first.startswith(message)
    assert "the file's own arrays give" in first or "the file counts" in first


def test_throughput_above_what_latency_allows(tmp_path: Path) -> None:
    path = changed(tmp_path, "max_concurrency", 1)
    (first, *_) = check(read_bench_file(path), Expected()).broken
    assert "is above" in first
    assert "the most that 1 requests at" in first


def test_a_terminal_does_not_obey_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = json.loads((CASES / "detailed-two-failed.json").read_text())
    record["errors"][4] = "\x1b[2J\x1b[1;1Hall is well\r\n"
    record["model_id"] = "\x1b[31mred"
    path = tmp_path / "file.json"
    path.write_text(json.dumps(record))
    assert main(["check", str(path)]) == 1
    output = capsys.readouterr().out
    assert "\x1b" not in output
    assert "all is well" in output


@given(
    st.sampled_from(["duration", "mean_ttft_ms", "mean_tpot_ms", "p99_itl_ms", "median_ttft_ms"]),
    st.sampled_from([math.nan, math.inf, -1.0, -math.inf]),
)
def test_impossible_times_are_never_valid(
    tmp_path_factory: pytest.TempPathFactory, name: str, value: float
) -> None:
    path = changed(tmp_path_factory.mktemp("case"), name, value)
    assert any(
        sentence.startswith(name) for sentence in check(read_bench_file(path), Expected()).broken
    )


@given(cut=st.integers(min_value=1, max_value=2400))
def test_a_file_cut_anywhere_is_refused(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    text = (CASES / "ok-detailed.json").read_bytes()
    path = tmp_path_factory.mktemp("case") / "cut.json"
    path.write_bytes(text[:-cut].rstrip() if text[:-cut].strip() else b"")
    with pytest.raises(UsageError):
        read_bench_file(path)
