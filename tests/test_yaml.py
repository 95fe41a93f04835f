"""YAML 1.2 scalars, no duplicate keys, a line for every value."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness import yaml
from harness.errors import UsageError


def read(tmp_path: Path, text: str) -> yaml.Document:
    path = tmp_path / "file.yaml"
    path.write_text(text)
    return yaml.read(path)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"), ("on", "on"), ("true", True), ("False", False), ("1:30", "1:30"),
        ("010", 10), ("1_000", "1_000"), ("12", 12), ("-3", -3), ("1.5", 1.5), ("1e3", 1000.0),
        ("~", None), ("", None), ("2026-11-30", "2026-11-30"), ("'12'", "12"), ("0x10", "0x10"),
    ],
)  # fmt: skip
def test_scalars_are_those_of_yaml_1_2(tmp_path: Path, text: str, value: object) -> None:
    found = read(tmp_path, f"key: {text}\n").data["key"]
    assert found == value
    assert type(found) is type(value)


def test_key_twice_names_both_lines(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"file.yaml:3: duplicate key 'a', first on line 1"):
        read(tmp_path, "a: 1\nb: 2\na: 3\n")


def test_key_twice_in_a_nested_block(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"file.yaml:4: duplicate key 'x', first on line 3"):
        read(tmp_path, "a: 1\nb:\n  x: 2\n  x: 3\n")


def test_broken_yaml_names_the_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"file.yaml:2: not valid YAML"):
        read(tmp_path, "a: [1\nb: 2\n")


def test_lines_of_values(tmp_path: Path) -> None:
    document = read(tmp_path, "a:\n  - x: 1\n    y: 2\n")
    assert document.line_of(("a", 0, "y")) == 3
    assert document.line_of(("a", 0, "missing")) == 2
