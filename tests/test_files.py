"""Writes are whole or not there, and JSON is strict."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import HostError, UsageError
from harness.files import before_write, read_json, write_json, write_text

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner),
    max_leaves=20,
)  # fmt: skip


@given(value=JSON)
def test_json_comes_back_as_it_was(value: object, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("json") / "value.json"
    write_json(path, value)
    assert read_json(path) == value


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_json_refuses_what_it_cannot_carry(value: float, tmp_path: Path) -> None:
    path = tmp_path / "value.json"
    with pytest.raises(ValueError, match="Out of range"):
        write_json(path, {"tpot": value})
    assert not path.exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1, "a": 2}', "duplicate key: a"),
        ('{"a": NaN}', "NaN is not JSON"),
        ("", "Expecting value"),
    ],
)
def test_reading_refuses_what_is_not_strict(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "value.json"
    path.write_text(text)
    with pytest.raises(UsageError, match=message):
        read_json(path)


@pytest.mark.parametrize("step", ["create", "write", "rename", "sync"])
def test_a_crash_at_any_step_leaves_the_old_file_or_the_new_one(step: str, tmp_path: Path) -> None:
    path = tmp_path / "value.txt"
    write_text(path, "old")

    def crash(name: str, _: Path) -> None:
        if name == step:
            raise KeyboardInterrupt

    with before_write(crash), pytest.raises(KeyboardInterrupt):
        write_text(path, "new")
    assert path.read_text() == ("new" if step == "sync" else "old")


def test_full_disk_is_a_message_and_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "value.txt"
    write_text(path, "old")

    def full(name: str, _: Path) -> None:
        if name == "write":
            raise OSError(errno.ENOSPC, "No space left on device")

    with before_write(full), pytest.raises(HostError, match="no space left") as caught:
        write_text(path, "new")
    assert caught.value.exit_code == 3
    assert [each.name for each in tmp_path.iterdir()] == ["value.txt"]
    assert path.read_text() == "old"
