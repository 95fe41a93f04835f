"""The writer of Markdown (GitHub's): a document in, text out, and the only place that escapes."""

from __future__ import annotations

import html
import re
import urllib.parse
from collections.abc import Sequence

from tabulate import DataRow, TableFormat, tabulate

from harness.document import (
    Block,
    Bullets,
    Code,
    CodeBlock,
    Document,
    Inline,
    Line,
    Link,
    Notice,
    Paragraph,
    Strong,
    Table,
)

MARKUP = re.compile(r"[\\`*_\[\]|~]|!$")
"""What is markup within a line; a final ``!`` would turn a link after it into an image."""
BLOCK = re.compile(r"#{1,6}(?=\s|$)|[+-](?=\s|$)|-(?=-+$)|\d{1,9}[.)](?=\s|$)")
"""What would turn the line that it begins into a heading, a list or a rule."""
IN_TARGETS = "/:?#&=%+,;@~"
"""What stays as it is in the target of a link, besides letters, digits and ``_.-``."""


def _rule(widths: Sequence[int], aligns: Sequence[str]) -> str:  # noqa: ARG001 - tabulate's call
    """Return ``|---|---|``, whatever the widths: the publication does not align its source."""
    return "|" + "---|" * len(widths)


PUBLISHED = TableFormat(
    lineabove=None,
    linebelowheader=_rule,
    linebetweenrows=None,
    linebelow=None,
    headerrow=DataRow("| ", " | ", " |"),
    datarow=DataRow("| ", " | ", " |"),
    padding=0,
    with_header_hide=None,
)
"""Tables as the publication writes them."""


def document(given: Document) -> str:
    """Return a document as Markdown, without a final newline."""
    parts = [f"# {_heading(given.title)}", *map(block, given.blocks)]
    for section in given.sections:
        parts += [f"## {_heading(section.title)}", *map(block, section.blocks)]
    return "\n\n".join(parts)


def block(given: Block) -> str:
    """Return one block as Markdown, without a final newline."""
    match given:
        case Paragraph(line):
            return _opening(line)
        case Notice(text):
            return f"> {_inline(Strong(text))}"
        case Bullets(items):
            return "\n".join(f"- {_opening(item)}" for item in items)
        case Table(header, rows):
            return _table(header, rows)
        case CodeBlock(text, language):
            fence = "`" * max(3, _longest_run(text) + 1)
            return f"{fence}{language}\n{text}\n{fence}"


def _heading(text: str) -> str:
    """Write a title; a final ``#`` would be taken for the heading's own end."""
    return re.sub(r"#$", r"\\#", _text(text).strip())


def _opening(line: Line) -> str:
    """Write a line at a place where a block of another kind could begin."""
    text = _line(line)
    found = BLOCK.match(text)
    return f"{text[: found.end() - 1]}\\{text[found.end() - 1 :]}" if found else text


def _table(header: Sequence[Line], rows: Sequence[Sequence[Line]]) -> str:
    return tabulate(
        [[_line(cell, in_table=True) for cell in row] for row in rows],
        headers=[_line(cell, in_table=True) for cell in header],
        tablefmt=PUBLISHED,
        stralign=None,
        numalign=None,
        disable_numparse=True,
        preserve_whitespace=True,
    )


def _line(line: Line, *, in_table: bool = False) -> str:
    pieces = line if isinstance(line, tuple) else (line,)
    return "".join(_inline(piece, in_table=in_table) for piece in pieces).strip()


def _inline(piece: Inline, *, in_table: bool = False) -> str:
    match piece:
        case str():
            return _text(piece)
        case Code(text):
            return _code(text, in_table=in_table)
        case Strong(text):
            return f"**{_text(text).strip()}**"
        case Link(text, target):
            safe = urllib.parse.quote(target, safe=IN_TARGETS)
            bare = text == target and "://" in target
            return f"<{safe}>" if bare else f"[{_text(text)}]({safe})"


def _text(text: str) -> str:
    """Make any text harmless: one line, no markup, no HTML, no second column of a table."""
    return MARKUP.sub(r"\\\g<0>", html.escape(_flat(text), quote=False))


def _code(text: str, *, in_table: bool) -> str:
    """Return a code span that holds any text, backquotes included."""
    flat = _flat(text).strip()
    if in_table:
        if "\\|" in flat:  # no code span in a table can hold these two side by side
            return _text(flat)
        flat = flat.replace("|", "\\|")
    fence = "`" * (_longest_run(flat) + 1)
    pad = " " if flat.startswith("`") or flat.endswith("`") else ""
    return f"{fence}{pad}{flat}{pad}{fence}"


def _flat(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def _longest_run(text: str) -> int:
    """Return the length of the longest run of backquotes."""
    return max(map(len, re.findall("`+", text)), default=0)
