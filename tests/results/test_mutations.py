"""Real results, changed in every way that disks, editors and people change them: no tracebacks.

The changes are drawn from a fixed seed, so a failure can be looked at again by its number.
"""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path
from typing import Any

import pytest

from harness.cli.main import main
from harness.errors import UsageError
from harness.results.bench import read_bench_file
from harness.results.cell_rules import batch_rules
from harness.results.measurement import from_bench, read_batch
from harness.results.validity import Expected, check
from harness.suite.plan import RequestSet
from tests.conftest import RESOURCES

BENCH = [
    RESOURCES / "cases" / name
    for name in ("ok-detailed.json", "ok-rust-client.json", "speculative-peak-below-mean.json",
                 "detailed-two-failed.json", "ok-request-rate.json")
] + [RESOURCES / "recorded" / "vllm-0.31.0-bench-8k-1-c4.json"]  # fmt: skip
BATCH = RESOURCES / "recorded" / "in-process-8k-1-c4.json"

EACH = 320
"""Mutations of each file; twice as many of the record of an engine."""

DEEP = "@deep@"
"""Stands for lists in lists, which Python cannot write so deep."""

ODD: list[Any] = [
    None, True, False, 0, -1, 1, 4.5, -0.0, 0.0, 1e308, -1e308, 5e-324, float("nan"),
    float("inf"), float("-inf"), 10**15, 10**400, -(10**400), "", "4", "inf", "nan", "x" * 5000,
    "\ud800", "\x1b[2J\x9b\u202e", [], {}, [[]], [None], {"a": {}}, [10**400], ["\udfff"], [[1.0]],
]  # fmt: skip
NAMES = ["p200_ttft_ms", "p_ttft_ms", "p99.9.9_itl_ms", "mean_ttft_ms:", "ramp_up_x", "std_e2el_ms",
         "p1e9_tpot_ms", "\x9b\u202e", "\ud800", "failed", "errors", "p50_ttft_ms"]  # fmt: skip

Path_ = tuple[Any, ...]


def places(value: Any, path: Path_ = ()) -> list[Path_]:
    """Return where every value in a record is; of long lists the ends."""
    found = [path] if path else []
    if isinstance(value, dict):
        keys = list(value)
    elif isinstance(value, list):
        keys = list(range(len(value)))[:3] + list(range(len(value)))[-1:]
    else:
        keys = []
    return found + [each for key in keys for each in places(value[key], (*path, key))]


def at(value: Any, path: Path_) -> Any:
    for key in path:
        value = value[key]
    return value


def change(chance: random.Random, record: dict[str, Any]) -> None:
    """Change a record's structure in one place."""
    place = chance.choice(places(record))
    holder, key = at(record, place[:-1]), place[-1]
    old = holder[key]
    match chance.randrange(9):
        case 0:
            del holder[key]
        case 1 | 2:
            holder[key] = copy.deepcopy(chance.choice(ODD))
        case 3 if isinstance(old, int | float) and abs(old) < 1e15:
            holder[key] = chance.choice([old * 2, -old, old / 7, int(old), float(old), old + 1])
        case 4 if isinstance(old, list):
            holder[key] = chance.choice([old[:-1], old * 2, old[::-1], [], [old], [*old, None]])
        case 5:
            other = chance.choice(places(record))
            if not isinstance(other[-1], int):
                holder[key] = copy.deepcopy(at(record, other))
        case 6:
            record[chance.choice(NAMES)] = copy.deepcopy(chance.choice(ODD))
        case 7:
            first, second = chance.sample(list(record), 2)
            record[first], record[second] = record[second], record[first]
        case _:
            holder[key] = chance.choice([[old], {"a": old}, DEEP])


def mangle(chance: random.Random, text: str) -> bytes:
    """Change a file's text or bytes in one place."""
    data = text.encode("utf-8", errors="replace")
    cut = chance.randrange(len(data))
    match chance.randrange(9):
        case 0:
            return data[:cut]
        case 1:
            return data[cut:]
        case 2:
            return data[:cut] + data + data[cut:]
        case 3:
            return data + chance.choice([b"\n", b",", b"\0"]) + data
        case 4:
            flipped = bytearray(data)
            for _ in range(chance.choice([1, 8, 64])):
                flipped[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
            return bytes(flipped)
        case 5:
            return text.encode(chance.choice(["utf-16", "utf-32-le", "utf-16-be", "utf-8-sig"]),
                               errors="replace")  # fmt: skip
        case 6:
            digits = chance.choice([20, 400, 4299, 5000])
            return data.replace(b": 4", b": 4" + b"0" * digits, 1)
        case 7:
            return chance.choice([b"[", b'{"a":', b"[{}"]) * 100_000
        case _:
            return (
                data.replace(b"128", chance.choice([b"1e999", b"-Infinity", b"0x80", b'"'])) + b" "
            )


def mutations(path: Path) -> list[bytes]:
    chance = random.Random(path.name)
    text = path.read_text(encoding="utf-8")
    changed = []
    for number in range(EACH):
        record = json.loads(text)
        for _ in range(chance.choice([1, 1, 2, 4])):
            change(chance, record)
        depth = chance.choice([10, 500, 900, 5000])
        written = json.dumps(record).replace(f'"{DEEP}"', "[" * depth + "]" * depth)
        changed.append(mangle(chance, written) if number % 3 == 0 else written.encode())
    return changed


@pytest.mark.parametrize("path", BENCH, ids=lambda path: path.name)
def test_check_has_an_answer_to_every_change(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "result.json"
    answers = set()
    for data in mutations(path):
        target.write_bytes(data)
        answers.add(main(["check", str(target), "--model", "tiny", "--output", "8"]))
        said = capsys.readouterr()
        shown = said.out + said.err
        assert all(letter.isprintable() or letter == "\n" for letter in shown), data[:2000]
    assert answers <= {0, 1, 2}
    assert {1, 2} <= answers


@pytest.mark.parametrize("path", BENCH, ids=lambda path: path.name)
def test_what_is_read_can_be_measured_with_or_is_broken(path: Path, tmp_path: Path) -> None:
    target = tmp_path / "result.json"
    for data in mutations(path)[::5]:
        target.write_bytes(data)
        try:
            bench = read_bench_file(target)
        except UsageError:
            continue
        broken = check(bench, Expected(input_lens=(8192,) * 4, window_s=1e6)).broken
        assert from_bench(bench).numbers or broken


def test_the_record_of_an_engine_has_an_answer_to_every_change(tmp_path: Path) -> None:
    requests = RequestSet(
        input_len=8192, output_len=1, concurrency=4, prompts=4, seed=0, name="8k-1-c4"
    )
    target = tmp_path / "result.json"
    outcomes: set[bool | str] = set()
    chance = random.Random(4)
    for data in [each for _ in range(2) for each in mutations(BATCH)]:
        # Ranks and requests weigh as much as what stands beside them.
        target.write_bytes(data if chance.random() < 0.7 else mangle(chance, BATCH.read_text()))
        try:
            outcomes.add(bool(list(batch_rules(read_batch(target), requests, None))))
        except UsageError:
            outcomes.add("refused")
    assert outcomes == {True, False, "refused"}
