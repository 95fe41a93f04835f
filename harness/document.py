"""A report as data: what it says and in what order, independent of any output format.

Text is plain text: a writer escapes whatever its format would read as markup. Everything is frozen,
so two documents that say the same are equal.
"""

from __future__ import annotations

from dataclasses import dataclass

DASH = "—"
"""Shown where there is no number."""


@dataclass(frozen=True)
class Code:
    """Text as a program reads or writes it."""

    text: str


@dataclass(frozen=True)
class Strong:
    """Text that must not be overlooked."""

    text: str


@dataclass(frozen=True)
class Link:
    """Text that links to a path below the run directory, or to a URL."""

    text: str
    target: str


Inline = str | Code | Strong | Link
"""A piece of a line; a ``str`` is plain text."""

Line = Inline | tuple[Inline, ...]
"""One piece, or several in a row: a cell, a bullet, a paragraph."""


@dataclass(frozen=True)
class Paragraph:
    """Running text."""

    line: Line


@dataclass(frozen=True)
class Notice:
    """What must be read before anything else."""

    text: str


@dataclass(frozen=True)
class Bullets:
    """An unordered list."""

    items: tuple[Line, ...]


@dataclass(frozen=True)
class Table:
    """Rows of cells; a number is text, or a link to the raw file that it comes from."""

    header: tuple[str, ...]
    rows: tuple[tuple[Line, ...], ...]

    def __post_init__(self) -> None:
        assert all(len(row) == len(self.header) for row in self.rows), "a row is incomplete"


@dataclass(frozen=True)
class CodeBlock:
    """Lines of a program, kept as they are."""

    text: str
    language: str


Block = Paragraph | Notice | Bullets | Table | CodeBlock


@dataclass(frozen=True)
class Section:
    """A part of a report under its own title."""

    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Document:
    """A whole report: what comes right under its title, then its sections."""

    title: str
    blocks: tuple[Block, ...]
    sections: tuple[Section, ...] = ()


def prose(text: str) -> Line:
    """Read a sentence of a suite's files, in which backquotes mark code."""
    pieces = text.split("`")
    if len(pieces) % 2 == 0:  # one backquote is unpaired: treat none of them as a mark
        return text
    return tuple(Code(piece) if index % 2 else piece for index, piece in enumerate(pieces) if piece)
