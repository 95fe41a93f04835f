"""Text from files stays text, whatever it holds, as a parser of Markdown sees it.

The parser is that of CommonMark with GitHub's tables and strikethrough.
"""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from harness.document import (
    Block,
    Bullets,
    Code,
    CodeBlock,
    Document,
    Line,
    Link,
    Notice,
    Paragraph,
    Section,
    Strong,
    Table,
    prose,
)
from harness.report import markdown

PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
# A NUL is no text in Markdown, and half a surrogate pair is none in UTF-8.
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
WORDS = st.lists(
    st.sampled_from([*"\\`*_[]()<>&|~!#+-=.1a \t\n", "\\|", "&amp;", "<b>", "```", "1.", "---"])
).map("".join)
"""Mostly markup, which text drawn from all of Unicode seldom is."""
ANY = TEXT | WORDS
INLINE = ANY | ANY.map(Code) | ANY.map(Strong) | st.builds(Link, ANY, ANY)


def flat(text: str) -> str:
    return " ".join(text.split())


def parsed(text: str) -> list[Token]:
    return PARSER.parse(text)


def kinds(tokens: list[Token]) -> list[str]:
    return [each.type for each in tokens]


def shown(token: Token) -> str:
    """Return the text of a line that a reader sees."""
    return "".join(each.content for each in token.children or [] if each.content)


def pieces(token: Token) -> list[str]:
    """Return what a line is made of, besides text."""
    return [each.type for each in token.children or [] if not each.type.startswith("text")]


@given(rows=st.lists(st.tuples(INLINE, INLINE, INLINE), min_size=1, max_size=3))
@example(rows=[(Code("a\\|b"), Code("|"), Link("|", "a|b"))])
def test_any_cell_leaves_a_table_its_columns(rows: list[tuple[Line, ...]]) -> None:
    found = parsed(markdown.block(Table(("a", "b", "c"), tuple(rows))))
    assert kinds(found).count("th_open") == 3
    assert kinds(found).count("tr_open") == 1 + len(rows)
    assert kinds(found).count("td_open") == 3 * len(rows)
    assert kinds(found)[0] == "table_open"
    assert kinds(found)[-1] == "table_close"


@given(cell=ANY | ANY.map(Code))
@example(cell=Code("a\\|b"))
def test_any_cell_of_a_table_is_shown_as_it_is(cell: str | Code) -> None:
    found = parsed(markdown.block(Table(("a", "b"), (("left", cell),))))
    text = cell.text if isinstance(cell, Code) else cell
    shows = [shown(each) for each in found if each.type == "inline"][3]
    assert shows == (flat(text) or ("``" if isinstance(cell, Code) else ""))


@given(header=st.lists(ANY, min_size=2, max_size=3))
def test_any_header_leaves_a_table_its_columns(header: list[str]) -> None:
    cells = tuple("x" for _ in header)
    found = parsed(markdown.block(Table(tuple(header), (cells,))))
    assert kinds(found).count("th_open") == kinds(found).count("td_open") == len(header)


@given(ANY)
@example("- a")
@example("1. a")
@example("---")
@example("# a")
@example("> a")
@example("    a")
@example("```sh\nrm\n```")
@example("<script>")
@example("[a]: b")
@example("~~a~~ **b** _c_ [d](e) `f`")
def test_a_paragraph_of_text_is_that_text(text: str) -> None:
    found = parsed(markdown.block(Paragraph(text)))
    if not flat(text):
        assert found == []
        return
    assert kinds(found) == ["paragraph_open", "inline", "paragraph_close"]
    assert shown(found[1]) == flat(text)
    assert pieces(found[1]) == []


@given(st.lists(ANY.filter(flat), min_size=1, max_size=3))
@example(["- a", "# a", "---"])
def test_bullets_are_one_list_of_as_many_items(texts: list[str]) -> None:
    found = parsed(markdown.block(Bullets(tuple(texts))))
    assert kinds(found).count("bullet_list_open") == 1
    assert kinds(found).count("list_item_open") == len(texts)
    assert [shown(each) for each in found if each.type == "inline"] == [*map(flat, texts)]


@given(ANY.filter(flat))
def test_a_notice_is_a_quote_in_bold(text: str) -> None:
    found = parsed(markdown.block(Notice(text)))
    assert kinds(found) == [
        "blockquote_open", "paragraph_open", "inline", "paragraph_close", "blockquote_close",
    ]  # fmt: skip
    assert shown(found[2]) == flat(text)


@given(ANY)
@example("```\nout of it")
@example("````")
def test_a_block_of_code_is_kept_as_it_is(text: str) -> None:
    text = re.sub(r"\r\n?", "\n", text)  # which every parser does
    found = parsed(markdown.block(CodeBlock(text, "sh")))
    assert kinds(found) == ["fence"]
    assert found[0].info == "sh"
    assert found[0].content == f"{text}\n"


@given(title=ANY.filter(flat), section=ANY.filter(flat))
@example(title="a #", section="#")
def test_titles_are_headings_of_their_text(title: str, section: str) -> None:
    text = markdown.document(Document(title, (), (Section(section, (Paragraph("p"),)),)))
    found = parsed(text)
    assert [each.tag for each in found if each.type == "heading_open"] == ["h1", "h2"]
    assert [shown(each) for each in found if each.type == "inline"] == [
        flat(title), flat(section), "p",
    ]  # fmt: skip


@given(text=ANY, target=ANY.filter(bool))
@example(text="a", target="a (b).md")
@example(text="a", target="a b|c<d>")
def test_a_link_is_a_link_behind_any_text(text: str, target: str) -> None:
    found = parsed(markdown.block(Paragraph((text, Link("here", target), " end"))))
    (inline,) = (each for each in found if each.type == "inline")
    assert pieces(inline) == ["link_open", "link_close"]
    assert shown(inline).endswith("here end")


@pytest.mark.parametrize(
    ("block", "text"),
    [
        (Paragraph(("a ", Code("b"), " ", Strong("c"))), "a `b` **c**"),
        (Paragraph(Link("54,985", "cells/a/bench.json")), "[54,985](cells/a/bench.json)"),
        (Paragraph(Link("https://a.b/c", "https://a.b/c")), "<https://a.b/c>"),
        (Paragraph(Code("a`b")), "``a`b``"),
        (Paragraph(Code("a|b")), "`a|b`"),
        (Paragraph("max_num_seqs <x> & y\n z"), "max\\_num\\_seqs &lt;x&gt; &amp; y z"),
        (Notice("Read this."), "> **Read this.**"),
        (Bullets(("a", ("b ", Code("c")))), "- a\n- b `c`"),
        (CodeBlock("a `b`", "sh"), "```sh\na `b`\n```"),
        # Not aligned, as the publication's own.
        (
            Table(("x", "long title"), (("1", Code("`a|b`")),)),
            "| x | long title |\n|---|---|\n| 1 | `` `a\\|b` `` |",
        ),
        # GitHub reads pairs of backslashes here, the parser of these tests does not.
        (
            Table(("x", "y"), (("1", Code("a\\|b")),)),
            "| x | y |\n|---|---|\n| 1 | a\\\\\\|b |",
        ),
    ],
)
def test_how_each_block_is_written(block: Block, text: str) -> None:
    assert markdown.block(block) == text


def test_blocks_and_sections_stand_apart() -> None:
    section = Section("S", (Paragraph("p"), Bullets(("b",))))
    text = markdown.document(Document("T", (Notice("n"),), (section,)))
    assert text == "# T\n\n> **n**\n\n## S\n\np\n\n- b"


def test_backquotes_in_a_suites_sentences_mark_code() -> None:
    assert prose("a `b` c") == ("a ", Code("b"), " c")
    assert prose("`b`") == (Code("b"),)
    assert prose("no code_here") == ("no code_here",)
    assert prose("5` of it") == "5` of it"
