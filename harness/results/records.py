"""The kit's own files in a run directory: strict, versioned, written once."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, JsonValue

from harness.validation import Strict

Cause = Literal["engine", "daemon", "client"]
"""Why a cell failed: its engine died, the Docker daemon went away, or the client failed."""

Listing = Annotated[tuple[str, ...], Field(strict=False)]


class CellRecord(Strict):
    """``cell.json``: what the raw files of a cell cannot say themselves. It is written last.

    ``state`` is ``ran`` when a result file was written, whatever it holds; validity is judged
    later, from the files. Times are UTC.
    """

    schema_version: Literal[1] = 1
    cell: str
    session: str
    state: Literal["ran", "failed"]
    reason: str | None = None
    cause: Cause | None = None
    """What made it fail."""
    log: str | None = None
    """Path, below the run directory, of the log that says more about why it failed."""
    began: str
    ended: str
    command: str
    engine_before: str
    engine_after: str

    @property
    def engine_lost(self) -> bool:
        """Whether the engine went away during the cell: that says nothing about the cell itself."""
        return self.cause in ("engine", "daemon")


class Sample(Strict):
    """One prompt's text, kept for a comparison with the server's tokenizer."""

    index: int
    text: str


class Manifest(Strict):
    """The prompts of a request set, as `harness.inside.prompts` describes them."""

    made_by: str
    client_args: Listing
    special_token_ids: Annotated[tuple[int, ...], Field(strict=False)]
    count: int
    lengths: Annotated[tuple[int, ...], Field(strict=False)]
    with_reserved_ids: int
    """Prompts with special or image tokens besides those that the tokenizer adds to any text."""
    sha256: str
    samples: Annotated[tuple[Sample, ...], Field(strict=False)]


def session_folder(recipe: str, number: int) -> str:
    """Return the folder of an engine start below the run directory."""
    return f"sessions/{recipe}/{number}"


class SessionRecord(Strict):
    """``session.json``: one start of an engine. Times are UTC, durations in seconds."""

    schema_version: Literal[1] = 1
    recipe: str
    number: int
    began: str
    command: str
    startup: dict[str, JsonValue]
    warmups: Listing
    tokenize_checked: int | None = None
    privileged: bool = False
    """Whether its container was privileged, beyond what its recipe grants."""

    @property
    def folder(self) -> str:
        """Folder of its files below the run directory."""
        return session_folder(self.recipe, self.number)


RunState = Literal["running", "interrupted", "stopped", "finished"]


class RunRecord(Strict):
    """``run.json``: the plan and everything that holds for the whole run."""

    schema_version: Literal[1] = 1
    run: str
    plan_hash: str
    plan: JsonValue
    host: str
    host_summary: str
    gpus: Listing = ()
    """Names of all GPUs of the host, one for each."""
    kit_version: str
    kit_commit: str | None
    began: str
    state: RunState
    ended: str | None = None
    images: dict[str, dict[str, JsonValue]] = Field(default_factory=dict)
    model: dict[str, JsonValue] | None = None
    """Revision and files of a downloaded model."""
    rdma: Listing = ()
    """One line for each RDMA device of the host, if an engine needs RDMA."""
