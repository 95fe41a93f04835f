"""The commit in a run's record is the kit's own, or none."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from harness.runner.run import kit_commit


def repository(folder: Path) -> str:
    """Make a repository with one file; return its commit."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "file").write_text("1\n")
    who = ("-c", "user.name=test", "-c", "user.email=test@example.org")
    for arguments in (("init", "-q"), ("add", "file"), (*who, "commit", "-q", "-m", "first")):
        subprocess.run(["git", "-C", str(folder), *arguments], check=True)
    head = ["git", "-C", str(folder), "rev-parse", "--short=12", "HEAD"]
    return subprocess.run(head, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let the kit believe that it runs from this folder."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)  # a Git hook sets these for its own repository
    folder = tmp_path / "outer" / "clone"
    folder.mkdir(parents=True)
    monkeypatch.setattr("harness.runner.run.clone", lambda: folder)
    return folder


def test_a_clone_says_its_commit_and_whether_files_differ(clone: Path) -> None:
    commit = repository(clone)
    assert kit_commit() == commit
    (clone / "file").write_text("2\n")
    assert kit_commit() == f"{commit}+changes"


def test_the_commit_of_a_repository_around_the_kit_is_not_its_own(clone: Path) -> None:
    repository(clone.parent)
    assert kit_commit() is None


def test_without_a_repository_there_is_no_commit(clone: Path) -> None:
    assert kit_commit() is None


def test_outside_of_a_clone_there_is_no_commit(
    clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository(clone)
    monkeypatch.setattr("harness.runner.run.clone", lambda: None)
    assert kit_commit() is None
