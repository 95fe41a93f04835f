"""Numbers are written as the publication writes them, and link to their files."""

from __future__ import annotations

import pytest

from harness.document import Code, Link, Table
from harness.report.tables import linked, number, ratio, text_table, without_links
from harness.suite.model import Workload
from harness.suite.published import TextTable


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


def test_a_number_is_linked_where_it_comes_from_a_file() -> None:
    assert linked("8.0", "cells/a/bench.json") == Link("8.0", "cells/a/bench.json")
    assert linked("8.0", None) == "8.0"


def test_only_links_are_taken_away() -> None:
    rows = ((Link("8.0", "a"), Code("b")), ((Link("c", "d"), ", ", Link("e", "f")), "g"))
    assert without_links(Table(("x", "y"), rows)) == Table(
        ("x", "y"), (("8.0", Code("b")), (("c", ", ", "e"), "g"))
    )


def test_a_row_of_a_table_is_whole() -> None:
    with pytest.raises(AssertionError, match="a row is incomplete"):
        Table(("x", "y"), (("1",),))


def test_words_of_the_publication_hold_code() -> None:
    words = TextTable(id="x", header=("a", "b"), rows=(("c", "( `d` )"),))
    assert text_table(words) == Table(("a", "b"), ((("c",), ("( ", Code("d"), " )")),))
