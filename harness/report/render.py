"""report.md and tables/: read from a run's files, assembled as data, written as Markdown."""

from __future__ import annotations

from harness.files import write_text
from harness.report import markdown
from harness.report.assemble import assemble
from harness.report.tables import fill, without_links
from harness.results.collect import Results, collect
from harness.results.run_directory import RunDirectory


def write_report(directory: RunDirectory) -> Results:
    """Write report.md and tables/ from the run's files; return what was read.

    Raises:
        UsageError: the files are not those of a run by this version.
        HostError: the disk is full, or the folder cannot be written.
    """
    results = collect(directory)
    for wanted in results.plan.tables:
        table = without_links(fill(wanted, results.plan.workloads, results).table)
        path = directory.path / "tables" / f"{wanted.id}.md"
        write_text(path, f"{markdown.block(table)}\n")
    write_text(directory.report, f"{markdown.document(assemble(results))}\n")
    return results
