"""The publication's own tables, printed from its claims alone."""

from __future__ import annotations

from harness.document import Document, Link, Paragraph
from harness.report.tables import Published, fill, text_table
from harness.suite.model import SuiteFile
from harness.suite.published import PublishedFile


def published_tables(suite: SuiteFile, published: PublishedFile) -> Document:
    """Return title, source, and every table in the publication's order."""
    words = {table.id: text_table(table) for table in published.text_tables}
    numbers = {
        table.id: fill(table, suite.workloads, Published(published)).table for table in suite.tables
    }
    tables = {**words, **numbers}
    source = Paragraph((f"{published.date}, ", Link(published.url, published.url)))
    return Document(published.title, (source, *(tables[name] for name in published.order)))
