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
    "ok-no-latencies.json",
    "ok-detailed-client-idle.json",
    "ok-rust-client.json",
    "ok-request-rate.json",
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
    "rust-client-one-failed.json": "3 of 4 requests completed, 1 failed: timeout",
    "error-texts-and-none-failed.json": "4 requests have an error text: timeout, but 0",
    # Out of range.
    "negative-input-tokens.json": "total_input_tokens is -512, which is not a possible count",
    "max-concurrency-zero.json": "max_concurrency is 0, which is not a possible count",
    "fewer-prompts-than-concurrency.json": "a concurrency of 256, which 4 requests cannot reach",
    "p200-ttft.json": "p200_ttft_ms: there is no percentile 200",
    "time-is-a-string.json": "p99_e2el_ms is '695.4', which is not a time",
    "negative-gap.json": "itls[2] holds -0.0205",
    "acceptance-rate-nan.json": "spec_decode_acceptance_rate is nan, which is not a percentage",
    "acceptance-rate-above-100.json": "spec_decode_acceptance_rate is 194.0, which is not a",
    "acceptance-length-below-one.json": "spec_decode_acceptance_length is 0.97",
    # Arrays that are not of the requests.
    "all-arrays-empty.json": "ttfts has 0 entries for 4 requests",
    "itls-of-three-requests.json": "itls has 3 entries for 4 requests",
    "start-times-of-five-requests.json": "start_times has 5 entries for 4 requests",
    "detailed-without-itls.json": "itls is missing",
    # Nothing was generated.
    "completed-zero-tokens.json": "0 output tokens in 4 requests: each has at least one",
    "prefill-generated-nothing.json": "0 output tokens in 16 requests: each has at least one",
    "one-of-four-generated-nothing.json": "1 of 4 completed requests have no output token",
    # Totals that are not those of their parts.
    "input-lens-sum-otherwise.json": "total_input_tokens is 512, but its requests have 448",
    "request-throughput-of-another-run.json": "request_throughput 4 x duration 2 s is 8 requests",
    "accepted-more-than-drafted.json": "2601 drafted tokens were accepted of 2600",
    # Times that cannot all be true.
    "duration-longer-than-latencies.json": "a duration of 200 s, but its requests take at most 3.2",
    "duration-longer-than-mean-latency-allows.json": "a duration of 6 s, but its requests take at",
    "duration-shorter-than-a-request.json": "a duration of 0.6 s, but its requests take at least",
    "duration-shorter-than-two-waves.json": "a duration of 0.776272 s, but its requests take at le",
    "starts-further-apart-than-duration.json": "a duration of 2 s, but 3.68686 s between",
    "rate-longer-than-arrivals.json": "a duration of 40 s, but its requests take at most 4.92605",
    "rate-faster-than-arrivals.json": "a duration of 2 s, but its requests take at least 210 s",
    "first-token-after-the-last.json": "request 0 ends after 0.684299 s, before its first token",
    "gaps-halved.json": "the gaps of request 1 sum to 0.318479 s, but its last token is 0.636957 s",
    "percentiles-fall.json": "p50_itl_ms 22 is above p90_itl_ms 20.8608",
    "ttft-above-e2el.json": "mean_ttft_ms 55.0016 is above mean_e2el_ms 50",
}
REFUSED = {
    "sweep-array.json": "2 records, expected one",
    "append-jsonl-colon-goodput.json": "2 records, expected one",
    "append-torn-last.json": "line 2, byte 2",
    "truncated.json": "line 1, byte 1",
    "empty.json": "the file is empty",
    "null.json": "the record is null",
    "duplicate-key-num-prompts-string.json": "duplicate key num_prompts, with",
    "another-tool-guidellm.json": "this is a guidellm file",
    "seconds-without-unit.json": "mean_tpot, mean_ttft: a time without a unit",
    "sglang-infinity.jsonl": "this is an sglang file",
    "sweep-without-records.json": "0 records, expected one",
    "colon-key-with-another-value.json": "duplicate key mean_ttft_ms, with 55.00",
    "completed-is-a-boolean.json": "num_prompts: Input should be a valid integer",
    "prompts-is-a-fraction.json": "num_prompts: Input should be a valid integer",
    "output-tokens-400-digits.json": "total_output_tokens: Input should be less than",
    "utf16-bom.json": "it is UTF-16, not UTF-8",
    "utf16-no-bom.json": "convert it: iconv -f UTF-16-LE -t UTF-8 ",
    "utf32-no-bom.json": "it is UTF-32, not UTF-8",
    "latin-1.json": "byte 104 is not UTF-8",
    "zeros.json": "it is 512 zero bytes",
    "result.pytorch.json": "this is the side file for another dashboard",
    "one-metric.pytorch.json": "name the file without .pytorch: ",
    "record-of-an-in-process-engine.json": "this is the record of an in-process engine",
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


@pytest.mark.parametrize("name", ["bench.json", "result.pytorch.json"])
def test_the_side_file_names_the_file_beside_it(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / name
    path.write_bytes((CASES / "result.pytorch.json").read_bytes())
    assert main(["check", str(path)]) == 2
    assert str(tmp_path / name.replace(".pytorch", "")) in capsys.readouterr().err


@pytest.mark.parametrize(("window_s", "valid"), [(None, True), (2.0, True), (0.5, False)])
def test_a_wave_lies_within_the_cells_own_time(window_s: float | None, *, valid: bool) -> None:
    bench = read_bench_file(CASES / "ok-detailed-client-idle.json")
    findings = check(bench, Expected(window_s=window_s))
    assert (findings.broken == []) is valid
    assert valid or findings.broken == ["a duration of 2 s within 0.5 s by the kit's own clock"]


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
    record["errors"][4] = "\x1b[2J\x1b[1;1Hall is well\r\n\x9b2J\u202egnp\u2066"
    record["model_id"] = "\x1b[31mred"
    path = tmp_path / "file.json"
    path.write_text(json.dumps(record))
    assert main(["check", str(path)]) == 1
    output = capsys.readouterr().out
    assert not set(output) & set("\x1b\r\x9b\u202e\u2066")
    assert "all is well" in output


@pytest.mark.parametrize("text", ['{"\x9b\u202e": 1, "\x9b\u202e": 2}', '{"completed": "\u009b"}'])
def test_a_terminal_does_not_obey_a_refused_file(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "\x1b[2J\u202efile.json"
    path.write_text(text)
    assert main(["check", str(path)]) == 2
    assert not set(capsys.readouterr().err) & set("\x1b\x9b\u202e")


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
