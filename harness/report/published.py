"""The publication's own tables, printed from its claims alone."""

from __future__ import annotations

from collections.abc import Iterator

from harness.report.tables import Published, fill, text_table
from harness.suite.model import SuiteFile
from harness.suite.published import PublishedFile


def published_tables(suite: SuiteFile, published: PublishedFile) -> Iterator[str]:
    """Yield title, source, and every table in the publication's order, as Markdown."""
    yield f"# {published.title}"
    yield ""
    yield f"{published.date}, <{published.url}>"
    words = {table.id: text_table(table) for table in published.text_tables}
    numbers = {
        table.id: fill(table, suite.workloads, Published(published)).markdown
        for table in suite.tables
    }
    for name in published.order:
        yield ""
        yield {**words, **numbers}[name]
