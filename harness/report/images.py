"""What the engines ran in: images, their bases and sources, the model's files, what was granted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pydantic import JsonValue

from harness.report.markdown import code, escape, link, table
from harness.results.collect import Results

NOTE = ".note"
"""Ending of an image's labels that a reader must see before quoting a number."""


def images(results: Results) -> str:
    """Return every image with its id, its verified base and its sources."""
    rows: list[list[str]] = []
    for name, record in results.record.images.items():
        base = _part(record, "base")
        if not base:
            continue  # a virtual environment: its locks stand under the versions
        rows += [
            [
                f"image {escape(name)}",
                f"{code(_text(record, 'reference'))} {code(_text(record, 'id'))}",
            ],
            ["base", f"{code(_text(base, 'reference'))}: {escape(_text(base, 'how'))}"],
        ]
        rows += [["source", code(each)] for each in _listed(record, "sources")]
        arguments = {**_part(record, "build_args")}
        rows += [
            ["build argument", code(f"{key}={value}")]
            for key, value in sorted(arguments.items())
            if not key.startswith("SDIST_")
        ]
    if model := results.record.model:
        files = _part(model, "files")
        rows.append(
            [
                "model",
                (
                    f"{code(_text(model, 'repository'))} at {code(_text(model, 'revision'))} "
                    f"({escape(_text(model, 'revision_from'))}); sha256 of {len(files)} files in "
                    f"{link('run.json', 'run.json')}"
                ),
            ]
        )
    rows += [["RDMA", escape(each)] for each in results.record.rdma]
    return "## Images, sources, model\n\n" + table(["what", "which"], rows) if rows else ""


def notes(results: Results) -> Iterator[str]:
    """Yield what about the images must be known before a number is quoted."""
    for name, record in results.record.images.items():
        base = _part(record, "base")
        if "local image" in _text(base, "how"):
            yield (
                f"Image {escape(name)} was built on the local image "
                f"{code(_text(base, 'reference'))}, not on the base of the lock."
            )
        labels = _part(record, "labels")
        for label in sorted(labels):
            if label.endswith(NOTE):
                yield f"Image {escape(name)}: {escape(str(labels[label]))}."
    if results.record.privileged:
        yield "DeepInfer ran in privileged containers, as was asked for with --privileged."


def _part(record: Mapping[str, JsonValue], name: str) -> Mapping[str, JsonValue]:
    value = record.get(name)
    return value if isinstance(value, dict) else {}


def _text(record: Mapping[str, JsonValue], name: str) -> str:
    return str(record.get(name, ""))


def _listed(record: Mapping[str, JsonValue], name: str) -> list[str]:
    value = record.get(name)
    return [str(each) for each in value] if isinstance(value, list) else []
