"""From results to report.md: the publication's tables, then the evidence."""
