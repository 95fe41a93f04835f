"""Numbers are written as the publication writes them."""

from __future__ import annotations

import pytest

from harness.report.tables import number, ratio
from harness.suite.model import Workload


@pytest.mark.parametrize(
    ("value", "metric", "text"),
    [
        (54985.4, "output_throughput", "54,985"),
        (335801.0, "total_throughput", "335,801"),
        (24.84, "mean_tpot_ms", "24.8 ms"),
        (0.31, "output_throughput", "0.3"),
        (1234.5, "mean_ttft_ms", "1,234.5 ms"),
    ],
)
def test_number(value: float, metric: str, text: str) -> None:
    assert number(value, metric) == text


def test_ratio() -> None:
    assert ratio(54985 / 27906) == "2.0×"
    assert ratio(589924 / 64847) == "9.1×"


@pytest.mark.parametrize(
    ("input_len", "output_len", "label"),
    [(128, 1024, "128 → 1K"), (8192, 1024, "8K → 1K"), (32768, 1, "32K → 1")],
)
def test_label(input_len: int, output_len: int, label: str) -> None:
    workload = Workload(input_len=input_len, output_len=output_len, concurrency=1)
    assert workload.label == label
