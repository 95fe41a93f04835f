"""A whole report from what a run recorded: the answer, the tables, then the evidence for them.

A pure function: the same results give the same document, on any machine.
"""

from __future__ import annotations

from harness.document import Document
from harness.report import compared, evidence, images, in_process, quoting, summary
from harness.results.collect import Results
from harness.results.verdict import judge


def assemble(results: Results) -> Document:
    """Return the report; a section that has nothing to show is left out."""
    judged = judge(results)
    sections = (
        *summary.tables(results),
        summary.not_measured(results),
        quoting.before_quoting(results),
        compared.verdicts(judged),
        compared.residuals(results),
        compared.not_stated(results),
        in_process.driving(results),
        evidence.cells(results),
        in_process.ranks(results),
        evidence.sessions(results),
        evidence.prompts(results),
        evidence.settings(results),
        images.images(results),
        evidence.versions(results),
    )
    return Document(
        title=summary.title(results),
        blocks=tuple(summary.head(results, judged)),
        sections=tuple(section for section in sections if section is not None),
    )
