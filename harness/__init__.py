"""The kit: plan a published benchmark, run it on this host, and reproduce its tables."""

from __future__ import annotations

__version__ = "0.1.0"
