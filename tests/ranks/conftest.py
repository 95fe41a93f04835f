"""A job for the launcher, in a folder of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ranks.launched import Launched


@pytest.fixture
def launched(tmp_path: Path) -> Launched:
    return Launched(tmp_path)
