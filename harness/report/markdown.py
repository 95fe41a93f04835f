"""Markdown in the publication's own form."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

from tabulate import DataRow, TableFormat, tabulate

DASH = "—"


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


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table of cells that are Markdown already."""
    return tabulate(
        rows,
        headers=header,
        tablefmt=PUBLISHED,
        stralign=None,
        numalign=None,
        disable_numparse=True,
        preserve_whitespace=True,
    )


def escape(text: str) -> str:
    """Make text from files harmless in Markdown: no markup, no HTML, no second table column."""
    flat = " ".join(text.split())
    return re.sub(r"([\\`*_\[\]|~])", r"\\\1", html.escape(flat, quote=False))


def code(text: str) -> str:
    """Return an inline code span that holds any text, backquotes included."""
    flat = " ".join(text.split()).replace("|", "\\|")
    longest = max((len(run) for run in re.findall(r"`+", flat)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if flat.startswith("`") or flat.endswith("`") else ""
    return f"{fence}{pad}{flat}{pad}{fence}"


def link(text: str, target: str) -> str:
    """Return a link; ``target`` is a path below the run directory."""
    return f"[{text}]({target})"
