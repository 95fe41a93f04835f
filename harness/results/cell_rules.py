"""Rules about a cell that its result file cannot prove alone: engine, counters, server log."""

from __future__ import annotations

import math
from collections.abc import Container, Iterator
from datetime import datetime
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from harness.engines.base import Engine, ServedEngine
from harness.errors import UsageError
from harness.reading import LOG_LIMIT, RECORD_LIMIT, read_text
from harness.results.measurement import Measurement
from harness.results.records import CellRecord, Manifest
from harness.results.run_directory import METRICS
from harness.results.times import outside
from harness.results.validity import spread
from harness.stamped_log import moment_of
from harness.suite.plan import RequestSet

COUNTER_TOLERANCE = 0.02
"""The server counts every request it saw; a count that differs from the client's means somebody
else's requests, or lost ones."""


def engine_rules(record: CellRecord) -> Iterator[str]:
    """Yield a sentence unless one and the same engine start served the whole cell."""
    if record.engine_before != record.engine_after:
        yield f"the engine was {record.engine_before} before and {record.engine_after} after"


def batch_rules(
    found: Measurement,
    requests: RequestSet,
    manifest: Manifest | None,
    window_s: float | None = None,
) -> Iterator[str]:
    """Yield what a driver's record breaks of what was asked for, and where it contradicts itself.

    ``window_s`` is the cell's time by the kit's own clock, in seconds, where it is known.
    """
    yield from found.contradictions
    yield from outside(found.duration_s, window_s)
    if found.completed != requests.prompts:
        yield f"{found.completed} of {requests.prompts} requests completed"
    wrong = [length for length in found.output_lens if length != requests.output_len]
    if wrong:
        yield f"output lengths {spread(wrong)}, expected {requests.output_len}"
    if manifest is not None and found.input_lens != manifest.lengths:
        yield (
            f"input lengths {spread(found.input_lens)}, but the prompts have "
            f"{spread(manifest.lengths)}"
        )
    if manifest is not None and found.ids_sha256 != manifest.sha256:
        yield (
            f"the engine did not read the prompts of the manifest: sha256 {found.ids_sha256}, "
            f"expected {manifest.sha256}"
        )
    if manifest is not None and manifest.with_reserved_ids:
        yield (
            f"{manifest.with_reserved_ids} prompts contain special or image tokens, which engines "
            "treat differently"
        )
    for name, value in (("wave", found.duration_s), ("mean TTFT", found.metric("mean_ttft_ms"))):
        if (
            not found.contradictions
            and value is not None
            and not (math.isfinite(value) and value > 0)
        ):
            yield f"the {name} is {value}, which no request can have taken"


def counter_rules(found: Measurement, folder: Path, engine: Engine) -> Iterator[str]:
    """Yield where the server's own token counters differ from what the client counts."""
    files = [folder / name for name in METRICS]
    if not isinstance(engine, ServedEngine) or not all(path.exists() for path in files):
        return
    try:
        texts = [read_text(path, limit=RECORD_LIMIT) for path in files]
    except UsageError as error:
        yield error.summary
        return
    before, after = (_counters(text, engine.counters) for text in texts)
    for name, kind in engine.counters.items():
        if name not in after:
            continue
        served = after[name] - before.get(name, 0.0)
        lens = found.input_lens if kind == "input" else found.output_lens
        if not math.isclose(served, sum(lens), rel_tol=COUNTER_TOLERANCE):
            yield (
                f"the server counted {served:,.0f} {kind} tokens ({name}), the client "
                f"{sum(lens):,}: somebody else used it, or requests were lost"
            )


def compile_rules(session: Path, engine: Engine, record: CellRecord) -> Iterator[str]:
    """Yield a sentence where kernels were compiled while the cell was measured."""
    try:
        found = compilations(session, engine, record.began, record.ended)
    except UsageError as error:
        yield error.summary
        return
    if found:
        logs = ", ".join(dict.fromkeys(log for log, _ in found))
        yield f"kernels were compiled within the measured window: {len(found)}, according to {logs}"


def compilations(session: Path, engine: Engine, began: str, ended: str) -> list[tuple[str, str]]:
    """Return what a session's logs say about compilation between two moments (ISO 8601).

    Each is the log's name and the line. Only lines with the time at which they arrived count.

    Raises:
        UsageError: a log cannot be read.
    """
    if engine.compiles is None:
        return []
    first, last = sorted(datetime.fromisoformat(moment) for moment in (began, ended))
    return [
        (log.name, line)
        for log in sorted(session.glob("*.log"))
        for line in read_text(log, limit=LOG_LIMIT, replace=True).splitlines()
        if engine.compiles.search(line)
        and (moment := moment_of(line)) is not None
        and first <= moment <= last
    ]


def _counters(text: str, names: Container[str]) -> dict[str, float]:
    """Return each counter's sum over its labels; nothing if the text is not metrics."""
    try:
        families = list(text_string_to_metric_families(text))
    except ValueError:
        return {}
    return {
        family.name: sum(each.value for each in family.samples if each.name.endswith("_total"))
        for family in families
        if family.name in names
    }
