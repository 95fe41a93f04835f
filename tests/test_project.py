"""The project's metadata agrees with its code."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import yaml

from harness import __version__
from harness.cli.parser import COMMAND

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_a_citation_names_this_version_under_its_licence() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == __version__
    assert citation["license"] == PYPROJECT["project"]["license"]
    assert citation["title"] == PYPROJECT["project"]["name"] == COMMAND


def test_the_newest_section_of_the_changelog_is_of_this_version() -> None:
    sections = (ROOT / "CHANGELOG.md").read_text().split("\n## ")[1:]
    assert re.match(r"\[(Unreleased|[\d.]+)\]", sections[0])
    assert __version__ in sections[0]


def test_hooks_run_linters_of_the_lint_session_and_pin_none() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    assert [repository["repo"] for repository in hooks["repos"]] == ["local"]
    noxfile = (ROOT / "noxfile.py").read_text()
    for hook in hooks["repos"][0]["hooks"]:
        assert hook["language"] == "system"
        session, linter = re.fullmatch(r"nox -R -s (\w+) -- (\w+)", hook["entry"]).groups()  # type: ignore[union-attr]
        assert f"def {session}(" in noxfile
        assert f'"{linter}": ("{shlex.split(hook["name"])[0]}"' in noxfile
