"""Text from files cannot break a table, whatever it holds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from harness.report.markdown import code, escape, link, table


@given(cells=st.lists(st.text(), min_size=2, max_size=2))
def test_a_row_stays_one_row_of_its_columns(cells: list[str]) -> None:
    text = table(["a", "b"], [[escape(cell) for cell in cells]])
    _, rule, row = text.split("\n")
    assert rule == "|---|---|"
    unescaped = row.replace("\\\\", "").replace("\\|", "")
    assert unescaped.count("|") == 3


@given(st.text())
def test_no_markup_survives_escaping(text: str) -> None:
    escaped = escape(text)
    assert "<" not in escaped
    assert "\n" not in escaped
    stripped = escaped.replace("\\\\", "")
    for sign in "`*_[]|~":
        assert stripped.count(sign) == stripped.count(f"\\{sign}")


def test_code_holds_backquotes() -> None:
    assert code("a`b") == "``a`b``"
    assert code("`a|b`") == "`` `a\\|b` ``"


def test_table_source_is_not_aligned() -> None:
    assert table(["x", "long title"], [["1", "2"]]) == "| x | long title |\n|---|---|\n| 1 | 2 |"
    assert link("54,985", "cells/a/bench.json") == "[54,985](cells/a/bench.json)"
