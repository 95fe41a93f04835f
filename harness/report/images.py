"""What the engines ran in: images, their bases and sources, the model's files, what was granted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pydantic import JsonValue

from harness.document import Code, Line, Link, Section, Table
from harness.results.collect import Results

Part = Mapping[str, JsonValue]

NOTE = ".note"
"""Suffix of those labels of an image that a reader must see before quoting a number."""


def images(results: Results) -> Section | None:
    """Return every image with its id, its verified base and its sources."""
    rows: list[tuple[Line, ...]] = []
    for name, record in results.record.images.items():
        # A virtual environment has no base: its pin is listed under the versions.
        if base := _part(record, "base"):
            rows += _image(name, record, base)
    if model := results.record.model:
        rows.append(("model", _model(model)))
    rows += [("RDMA", each) for each in results.record.rdma]
    if not rows:
        return None
    return Section("Images, sources, model", (Table(("item", "value"), tuple(rows)),))


def _image(name: str, record: Part, base: Part) -> Iterator[tuple[Line, ...]]:
    id_ = Code(_text(record, "id"))
    yield f"image {name}", (Code(_text(record, "reference")), " ", id_)
    yield "base", (Code(_text(base, "reference")), f": {_text(base, 'how')}")
    for source in _listed(record, "sources"):
        yield "source", Code(source)
    for key, value in sorted(_part(record, "build_args").items()):
        if not key.startswith("SDIST_"):
            yield "build argument", Code(f"{key}={value}")


def _model(model: Part) -> Line:
    return (
        Code(_text(model, "repository")),
        " at ",
        Code(_text(model, "revision")),
        f" ({_text(model, 'revision_from')}); sha256 of {len(_part(model, 'files'))} files in ",
        Link("run.json", "run.json"),
    )


def notes(results: Results) -> Iterator[Line]:
    """Yield what must be known about the images before a number is quoted."""
    for name, record in results.record.images.items():
        base = _part(record, "base")
        if "local image" in _text(base, "how"):
            yield (
                f"Image {name} was built on the local image ",
                Code(_text(base, "reference")),
                ", not on the locked base.",
            )
        labels = _part(record, "labels")
        for label in sorted(labels):
            if label.endswith(NOTE):
                yield f"Image {name}: {labels[label]}."
    if privileged := dict.fromkeys(each.recipe for each in results.sessions if each.privileged):
        yield f"{', '.join(privileged)} ran in privileged containers, as requested."


def _part(record: Part, name: str) -> Part:
    value = record.get(name)
    return value if isinstance(value, dict) else {}


def _text(record: Part, name: str) -> str:
    return str(record.get(name, ""))


def _listed(record: Part, name: str) -> list[str]:
    value = record.get(name)
    return [str(each) for each in value] if isinstance(value, list) else []
