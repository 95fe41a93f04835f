"""Read what ``vllm bench serve`` wrote: one record of this tool, or a refusal that says why.

Nothing is guessed: a duplicate key with two values, several records, another tool's names or a
missing unit are refused (exit 2). Impossible numbers are kept as they are: whether the file is a
measurement is judged by `harness.results.validity`.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from harness.errors import UsageError
from harness.reading import RESULT_LIMIT, read_text

OTHER_FILES = {
    "a guidellm file": ("benchmarks", "metadata"),
    "an sglang file": ("total_throughput", "mean_e2e_latency_ms"),
    "the record of an in-process engine, which the verb `report` reads": ("ids_sha256", "ranks"),
}
"""Files that are taken for a result, and the keys by which they are known: all must be there."""

SIDE_FILE = {"benchmark", "metric", "model"}
"""The keys of each record in the ``.pytorch.json`` that the client writes beside its result."""

Count = Annotated[int, Field(strict=True, gt=-(10**15), lt=10**15)]
"""A whole number that a counter can hold; a boolean, a string or a fraction is none."""
Number = Annotated[float, Field(strict=True)]


class BenchFile(BaseModel):
    """One result, as vLLM 0.31 or its Rust client writes it. Seconds where no unit is in a name.

    Arrays are present only with ``--save-detailed``; `latencies` holds only the completed requests,
    the others hold every request. Peaks count streamed chunks and are not read.
    """

    model_config = ConfigDict(extra="allow", frozen=True)

    model_id: str
    num_prompts: Count
    max_concurrency: Count | None
    request_rate: Number | Literal["inf"] | None = None
    burstiness: Number | None = None
    duration: Number
    completed: Count
    failed: Count | None = None
    total_input_tokens: Count
    total_output_tokens: Count
    request_throughput: Number | None = None
    request_goodput: Number | None = None
    input_throughput: Number | None = None
    output_throughput: Number
    total_token_throughput: Number
    max_output_tokens_per_s: Number | None = None
    max_concurrent_requests: Count | None = None
    rtfx: Number | None = None
    mean_ttft_ms: Number
    mean_tpot_ms: Number
    spec_decode_acceptance_rate: Number | None = None
    """Percent."""
    spec_decode_acceptance_length: Number | None = None
    spec_decode_num_drafts: Count | None = None
    spec_decode_draft_tokens: Count | None = None
    spec_decode_accepted_tokens: Count | None = None
    spec_decode_per_position_acceptance_rates: tuple[Number, ...] | None = None
    latencies: tuple[Number, ...] | None = None
    input_lens: tuple[Count, ...] | None = None
    output_lens: tuple[Count, ...] | None = None
    ttfts: tuple[Number, ...] | None = None
    itls: tuple[tuple[Number, ...], ...] | None = None
    start_times: tuple[Number, ...] | None = None
    queue_times: tuple[Number, ...] | None = None
    generated_texts: tuple[str, ...] | None = None
    errors: tuple[str, ...] | None = None

    @property
    def succeeded(self) -> list[int]:
        """Indices of completed requests in the arrays; failed ones are in no statistic."""
        errors = self.errors if self.errors is not None else ("",) * len(self.output_lens or ())
        return [index for index, error in enumerate(errors) if not error]

    @property
    def rate(self) -> float | None:
        """Arrivals per second; infinite where all are sent at once, None where it is not known."""
        return float(self.request_rate) if self.request_rate is not None else None

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
        UsageError: it cannot be read, or is not one record of this tool.
    """
    record = _one_record(path, read_text(path, limit=RESULT_LIMIT))
    _known_tool(path, record)
    try:
        # Older releases wrote the key with its colon.
        record = _unique(path, [(key.removesuffix(":"), value) for key, value in record.items()])
        return BenchFile.model_validate(record)
    except (RecursionError, UnicodeError):  # half a surrogate pair is no text
        _refuse(path, "a name or value in it is not text", "nothing was measured")
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        _refuse(path, f"{where}: {first['msg']}", "another tool or an older release wrote it")


def shown(value: object) -> str:
    """Write a JSON value in a sentence: at most 40 characters, whatever it holds."""
    match value:
        case None:
            return "null"
        case list():
            return "a list"
        case dict():
            return "an object"
        case _:
            return repr(value)[:40]


def _one_record(path: Path, text: str) -> dict[str, Any]:
    """Return the only JSON object of ``text``."""
    if not text.strip():
        _refuse(
            path,
            "the file is empty",
            "the client was killed before it wrote",
            "measure again; the client's log says how it ended",
        )
    records = _records(path, text)
    if len(records) == 1 and isinstance(records[0], list):
        records = records[0]
    if records and all(isinstance(each, dict) and each.keys() >= SIDE_FILE for each in records):
        beside = path.with_name(path.name.replace(".pytorch", ""))
        _refuse(
            path,
            "this is the side file for another dashboard",
            "the client writes it, as .pytorch.json, beside its result",
            f"name the file without .pytorch: {shlex.quote(str(beside))}",
        )
    if len(records) != 1:
        apart = """jq -c 'if type == "array" then .[] else . end'"""
        _refuse(
            path,
            f"{len(records)} records, expected one",
            "a sweep, or --append-result: split the file, one record per file",
            f"{apart} {shlex.quote(str(path))} | split -l 1 - record-",
        )
    if not isinstance(records[0], dict):
        _refuse(path, f"the record is {shown(records[0])}", "nothing was measured")
    return records[0]


def _records(path: Path, text: str) -> list[Any]:
    """Return the JSON values of ``text``, one after the other."""
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
                f"measure again; see where it ends: {shlex.join(('tail', '-c', '200', str(path)))}",
            )
        except ValueError as error:  # a number of thousands of digits
            _refuse(path, str(error), "nothing was measured")
        records.append(record)
    return records


def _unique(path: Path, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    seen: dict[str, Any] = {}
    for key, value in pairs:
        if key in seen and seen[key] != value:
            _refuse(
                path,
                f"duplicate key {key[:40]}, with {shown(seen[key])} and {shown(value)}",
                "--metadata was given a name that the client writes itself",
            )
        seen[key] = value
    return seen


def _known_tool(path: Path, record: dict[str, Any]) -> None:
    for what, keys in OTHER_FILES.items():
        if all(key in record for key in keys):
            _refuse(path, f"this is {what}", "only results of vllm bench serve are read")
    bare = sorted(key for key in ("mean_ttft", "mean_tpot") if key in record)
    if bare and "mean_ttft_ms" not in record:
        _refuse(
            path,
            f"{', '.join(bare)}: a time without a unit",
            "another program rewrote the file; the times may be seconds or milliseconds",
        )


def _refuse(path: Path, what: str, usually: str, next_step: str | None = None) -> NoReturn:
    raise UsageError(
        f"{path}: not one result of vllm bench serve: {what}",
        usually=usually,
        next_step=next_step or f"inspect it: {shlex.join(('ls', '-l', str(path)))}",
    )
