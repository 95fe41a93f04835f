"""Read what ``vllm bench serve`` wrote: one record of this tool, or a refusal that says why.

Nothing is guessed: a duplicate key with two values, several records, another tool's names or a
missing unit are refused (exit 2). Impossible numbers are kept as they are: whether the file is a
measurement is judged by `harness.results.validity`.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any, Literal, NoReturn

from pydantic import BaseModel, ConfigDict, ValidationError

from harness.errors import UsageError

ENCODING = "utf-8-sig"
"""UTF-8; a byte order mark, which editors on other systems may add, is not part of the text."""

OTHER_TOOLS = {
    "guidellm": ("benchmarks", "metadata"),
    "sglang": ("total_throughput", "mean_e2e_latency_ms"),
}
"""Keys by which files of similar tools are recognized; all of them must be present."""


class BenchFile(BaseModel):
    """One result, as written by vLLM 0.31. Times in seconds where no unit is in the name.

    Arrays are present only with ``--save-detailed``; `latencies` holds only the completed requests,
    the others hold every request. Peaks count streamed chunks and are not read.
    """

    model_config = ConfigDict(extra="allow", frozen=True)

    model_id: str
    num_prompts: int
    max_concurrency: int | None
    request_rate: float | Literal["inf"] | None = None
    duration: float
    completed: int
    failed: int | None = None
    total_input_tokens: int
    total_output_tokens: int
    output_throughput: float
    total_token_throughput: float
    mean_ttft_ms: float
    mean_tpot_ms: float
    latencies: tuple[float, ...] | None = None
    input_lens: tuple[int, ...] | None = None
    output_lens: tuple[int, ...] | None = None
    ttfts: tuple[float, ...] | None = None
    itls: tuple[tuple[float, ...], ...] | None = None
    errors: tuple[str, ...] | None = None

    @property
    def succeeded(self) -> list[int]:
        """Indices of completed requests in the arrays; failed ones are in no statistic."""
        errors = self.errors or ("",) * len(self.output_lens or ())
        return [index for index, error in enumerate(errors) if not error]

    @property
    def other_numbers(self) -> dict[str, Any]:
        """What the file holds beyond the fields above: medians, percentiles and more."""
        return self.model_extra or {}

    @property
    def numbers(self) -> dict[str, float]:
        """Every number at the top level of the file, by its key there."""
        fields = {name: getattr(self, name) for name in type(self).model_fields}
        return {
            key: value
            for key, value in {**fields, **self.other_numbers}.items()
            if isinstance(value, int | float) and not isinstance(value, bool)
        }

    @property
    def has_tpot(self) -> bool:
        """Return whether requests had more than one output token; else its zeros mean nothing."""
        return self.total_output_tokens > self.completed


def read_bench_file(path: Path) -> BenchFile:
    """Read ``path``.

    Raises:
        UsageError: it is not one record of this tool.
    """
    if path.exists() and not path.is_file():
        _refuse(path, "it is not a regular file", "a folder or a device was named")
    try:
        text = path.read_text(encoding=ENCODING)
    except (OSError, UnicodeDecodeError) as error:
        _refuse(path, str(error), "the file is missing, or is not text")
    record = _one_record(path, text)
    _known_tool(path, record)
    # Older releases wrote the key with its colon.
    record = {key.removesuffix(":"): value for key, value in record.items()}
    try:
        return BenchFile.model_validate(record)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        _refuse(path, f"{where}: {first['msg']}", "another tool or an older release wrote it")


def _one_record(path: Path, text: str) -> dict[str, Any]:
    """Return the only JSON object of ``text``."""
    if not text.strip():
        _refuse(path, "the file is empty", "the client was killed before it wrote")
    decoder = json.JSONDecoder(object_pairs_hook=lambda pairs: _unique(path, pairs))
    records: list[Any] = []
    position = 0
    while position < len(text):
        if text[position].isspace():
            position += 1
            continue
        try:
            record, position = decoder.raw_decode(text, position)
        except RecursionError:
            _refuse(path, "it is nested too deeply", "nothing was measured")
        except json.JSONDecodeError as error:
            whole = f"; {len(records)} whole record(s) precede it" if records else ""
            offset = len(text[: error.pos].encode())
            _refuse(
                path,
                f"line {error.lineno}, byte {offset}: {error.msg}{whole}",
                "the client was killed while writing, or the disk was full",
            )
        except ValueError as error:  # a number of thousands of digits
            _refuse(path, str(error), "nothing was measured")
        records.append(record)
    if len(records) == 1 and isinstance(records[0], list):
        records = records[0]
    if len(records) != 1:
        _refuse(
            path,
            f"{len(records)} records, expected one",
            "a sweep, or --append-result: split the file, one record per file",
        )
    if not isinstance(records[0], dict):
        _refuse(path, f"the record is {json.dumps(records[0])[:40]}", "nothing was measured")
    return records[0]


def _unique(path: Path, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    seen: dict[str, Any] = {}
    for key, value in pairs:
        if key in seen and seen[key] != value:
            _refuse(
                path,
                f"duplicate key {key}, with {seen[key]!r} and {value!r}",
                "--metadata was given a name that the client writes itself",
            )
        seen[key] = value
    return seen


def _known_tool(path: Path, record: dict[str, Any]) -> None:
    for tool, keys in OTHER_TOOLS.items():
        if all(key in record for key in keys):
            _refuse(path, f"{tool} wrote this file", "only results of vllm bench serve are read")
    bare = sorted(key for key in ("mean_ttft", "mean_tpot") if key in record)
    if bare and "mean_ttft_ms" not in record:
        _refuse(
            path,
            f"{', '.join(bare)}: a time without a unit",
            "another program rewrote the file; the times may be seconds or milliseconds",
        )


def _refuse(path: Path, what: str, usually: str) -> NoReturn:
    raise UsageError(
        f"{path}: not one result of vllm bench serve: {what}",
        usually=usually,
        next_step=f"inspect it: {shlex.join(('ls', '-l', str(path)))}",
    )
