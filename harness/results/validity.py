"""What counts as a measurement. Each broken rule is one sentence that names both values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from harness.results.measurement import Measurement
from harness.results.records import CellRecord, Manifest
from harness.suite.plan import Load


def broken_rules(
    measurement: Measurement, load: Load, manifest: Manifest | None, record: CellRecord
) -> list[str]:
    """Return why a wave is no measurement of ``load``; nothing where it is one."""
    broken = []
    if measurement.failed or measurement.completed != load.prompts:
        broken.append(
            f"{measurement.completed} of {load.prompts} requests completed, "
            f"{measurement.failed} failed" + "".join(f"; {text}" for text in measurement.errors[:1])
        )
    wrong = [length for length in measurement.output_lens if length != load.output_len]
    if wrong:
        broken.append(f"output lengths {_spread(wrong)} where {load.output_len} was asked for")
    if manifest is None:
        broken.append("the manifest of its prompts is missing")
    elif measurement.input_lens != manifest.lengths:
        broken.append(
            f"input lengths {_spread(measurement.input_lens)} where the prompts have "
            f"{_spread(manifest.lengths)}"
        )
    if record.engine_before != record.engine_after:
        broken.append(
            f"the engine was {record.engine_before} before and {record.engine_after} after"
        )
    return broken


def _spread(lengths: Sequence[int]) -> str:
    """Write ``4 x 1024`` for lengths, the most frequent first."""
    common = Counter(lengths).most_common(3)
    more = ", ..." if len(set(lengths)) > len(common) else ""
    return ", ".join(f"{count} x {length}" for length, count in common) + more
