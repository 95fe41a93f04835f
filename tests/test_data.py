"""The kit's own files: a clone's first, else those inside the package."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness import data

ROOT = Path(__file__).parents[1]


def test_in_a_clone_everything_is_the_clones() -> None:
    assert data.clone() == ROOT
    assert data.data_folder("recipes") == ROOT / "recipes"
    assert data.data_folder("docker") == ROOT / "docker"
    assert data.reports_folder() == ROOT / "reports"


def test_what_other_packages_left_beside_the_kit_is_no_clone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "site-packages" / "harness"
    package.mkdir(parents=True)
    (package.parent / "docker").mkdir()
    (package.parent / "pyproject.toml").write_text("")
    monkeypatch.setattr(data, "PACKAGE", package)
    monkeypatch.chdir(tmp_path)
    assert data.clone() is None
    assert data.data_folder("docker") == package / "_data" / "docker"
    assert data.reports_folder() == tmp_path / "reports"
