"""Whatever stands where a file is expected, reading it ends in its text or in a message."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.files import read_json
from harness.reading import MEMORY, MIB, RECORD_LIMIT, RESULT_LIMIT, read_text
from harness.results.batch_record import read_batch_record
from harness.results.bench import read_bench_file


def refused(path: Path, limit: int = RECORD_LIMIT) -> UsageError:
    with pytest.raises(UsageError) as caught:
        read_text(path, limit=limit)
    assert str(path) in caught.value.what
    assert caught.value.usually
    assert caught.value.next_step
    return caught.value


@pytest.mark.parametrize("read", [read_json, read_bench_file, read_batch_record])
def test_a_pipe_that_nobody_writes_to_is_not_waited_for(read: object, tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    os.mkfifo(path)
    with pytest.raises(UsageError, match="it is a pipe, not a regular file"):
        read(path)  # type: ignore[operator]


def test_folders_devices_and_sockets_are_named(tmp_path: Path) -> None:
    assert "it is a folder" in refused(tmp_path).what
    assert "it is a device" in refused(Path("/dev/zero")).what
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        assert "it is a socket" in refused(path).what


def test_a_link_to_a_file_is_followed_and_one_to_nothing_is_a_message(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("text")
    (tmp_path / "link").symlink_to("there")
    assert read_text(tmp_path / "link", limit=4) == "text"
    (tmp_path / "dangling").symlink_to("nowhere")
    assert "No such file" in refused(tmp_path / "dangling").what
    (tmp_path / "circle").symlink_to("circle")
    assert "levels of symbolic links" in refused(tmp_path / "circle").what


def test_a_sparse_file_is_refused_by_its_size(tmp_path: Path) -> None:
    path = tmp_path / "sparse"
    path.touch()
    os.truncate(path, 30 * 2**30)
    assert "more than 256 MiB" in refused(path, RESULT_LIMIT).what


def test_a_file_without_a_size_is_read_up_to_the_limit() -> None:
    # Files below /proc say 0 bytes.
    path = Path("/proc/self/status")
    assert read_text(path, limit=RECORD_LIMIT).startswith("Name:")
    refused(path, limit=16)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ('{"a": 1}'.encode("utf-16"), "convert it: iconv -f UTF-16 "),
        ('{"a": 1}'.encode("utf-16-be"), "convert it: iconv -f UTF-16-BE "),
        ('{"a": 1}'.encode("utf-32"), "convert it: iconv -f UTF-32 "),
        (b"\x1f\x8b\x08rest", "unpack it: gunzip "),
        (b"\x28\xb5\x2f\xfdrest", "unpack it: unzstd "),
        (b"\0" * 9, "measure again"),
        (b"\x7fELF\x02\xff", "see what it is: file "),
        (b'{"a": "\xe9"}', "see what it is: file "),
    ],
)
def test_what_is_not_utf8_is_named_and_says_what_to_do(
    data: bytes, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "a file"
    path.write_bytes(data)
    error = refused(path)
    assert message in error.next_step
    if "again" not in message:
        assert "a file'" in error.next_step


@pytest.mark.parametrize(
    ("element", "count"),
    [("[],", 20 * MIB), ('{"":0},', 20 * MIB), ("\U0001f600", 60 * MIB)],
    ids=["empty lists", "objects", "wide text"],
)
def test_what_would_fill_the_memory_is_refused(element: str, count: int, tmp_path: Path) -> None:
    path = tmp_path / "heavy.json"
    path.write_bytes(element.encode() * count)
    assert path.stat().st_size <= RESULT_LIMIT
    assert "MiB of memory" in refused(path, RESULT_LIMIT).what


@pytest.mark.parametrize("element", ["[],", "[0.5],", '{"":0.5},', '"ab",', "0.5,", "12345,"])
def test_reading_stays_below_a_gibibyte(element: str, tmp_path: Path) -> None:
    """The heaviest file of each element that is still read, in a process of its own."""
    marks = {"[": 100, ",": 48, "{": 300, '"': 40}
    each = len(element) + sum(marks.get(letter, 0) for letter in element)
    count = min(MEMORY // each, RESULT_LIMIT // len(element)) - 100
    path = tmp_path / "result.json"
    path.write_text("[" + element * count + "0]")
    script = (
        "import sys; from pathlib import Path\n"
        "from harness.errors import UsageError\n"
        "from harness.results.bench import read_bench_file\n"
        "try: read_bench_file(Path(sys.argv[1]))\n"
        "except UsageError as error: print(error.what)\n"
        # Of this program alone: ru_maxrss counts the process that started it as well.
        "status = Path('/proc/self/status').read_text()\n"
        "print(status.split('VmHWM:')[1].split()[0])"
    )
    found = subprocess.run(
        [sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True
    )
    said, peak = found.stdout.splitlines()
    assert "records, expected one" in said
    assert int(peak) * 1024 < 2**30


def test_the_limits_leave_room_for_what_the_kit_measures() -> None:
    # 4,096 requests of 1,024 tokens: a gap is written in at most 22 digits and a comma.
    times = 4096 * 1023
    assert times * 24 < RESULT_LIMIT
    assert times * (24 + 48) < MEMORY
