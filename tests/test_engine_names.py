"""Only an engine's own code knows it by name, so another engine is only another file."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.engines.registry import ENGINES

HARNESS = Path(__file__).parents[1] / "harness"
AT_HOME = ("engines", "settings", "inside", "model")
"""Where an engine, or a model, is written down by its name."""
# Names a program that it starts once, not an engine.
PROGRAMS = ("runtime/environment.py",)
NAMES = {*ENGINES.names, *(ENGINES[name].settings.product.lower() for name in ENGINES.names)}


def sources() -> list[Path]:
    return [
        path
        for path in sorted(HARNESS.rglob("*.py"))
        if path.relative_to(HARNESS).parts[0] not in AT_HOME
        and path.relative_to(HARNESS).as_posix() not in PROGRAMS
    ]


def named(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield each place where an engine's name is a value, or an engine is compared."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if node.value.lower() in NAMES:
                yield node.lineno, f"the constant {node.value!r}"
        elif isinstance(node, ast.Compare | ast.MatchValue):
            for each in ast.walk(node):
                if isinstance(each, ast.Attribute) and each.attr == "engine":
                    yield node.lineno, "a comparison of an engine's name"
        elif isinstance(node, ast.Match) and getattr(node.subject, "attr", "") == "engine":
            yield node.lineno, "a match of an engine's name"


def test_no_code_compares_an_engine_by_name() -> None:
    found = [
        f"{path.relative_to(HARNESS)}:{line}: {what}"
        for path in sources()
        for line, what in named(ast.parse(path.read_text()))
    ]
    assert not found


@pytest.mark.parametrize(
    "text",
    [
        'if session.engine == "vllm-server": pass',
        'SERVED = ("vllm-server",)',
        'DEFAULT = "DeepInfer"',
        "if session.engine == recipe.engine: pass",
        'match session.engine:\n    case "deepinfer":\n        pass',
        "match session.engine:\n    case _:\n        pass",
        'runner = {"deepinfer": 1}',
    ],
)
def test_the_search_finds(text: str) -> None:
    assert list(named(ast.parse(text)))
