"""Python sources read as trees, never executed: classes, functions, parameters, defaults."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

REQUIRED = "required"
"""Stands for a parameter without a default."""


@dataclass(frozen=True)
class Source:
    """One file of a package."""

    path: Path

    @property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    def class_(self, name: str) -> ast.ClassDef:
        """Return a class; a renamed one fails here with its name."""
        for node in ast.walk(ast.parse(self.text)):
            if isinstance(node, ast.ClassDef) and node.name == name:
                return node
        raise AssertionError(f"{self.path.name} has no class {name}")

    def method(self, cls: str, name: str) -> ast.FunctionDef:
        """Return a method."""
        for node in self.class_(cls).body:
            if isinstance(node, ast.FunctionDef) and node.name == name:
                return node
        raise AssertionError(f"{self.path.name}: {cls} has no method {name}")

    def methods(self, cls: str) -> set[str]:
        """Return all names that a class defines as methods or properties."""
        return {node.name for node in self.class_(cls).body if isinstance(node, ast.FunctionDef)}

    def fields(self, cls: str) -> dict[str, str]:
        """Return a dataclass's fields with their defaults as written."""
        return {
            node.target.id: ast.unparse(node.value) if node.value else REQUIRED
            for node in self.class_(cls).body
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
        }

    def assigned(self, cls: str, method: str) -> set[str]:
        """Return the attributes that a method sets on ``self``."""
        return {
            target.attr
            for node in ast.walk(self.method(cls, method))
            for target in (
                node.targets if isinstance(node, ast.Assign) else
                [node.target] if isinstance(node, ast.AnnAssign) else []
            )
            if isinstance(target, ast.Attribute)
        }  # fmt: skip


def parameters(function: ast.FunctionDef) -> dict[str, str]:
    """Return a function's parameters with their defaults as written, ``self`` left out."""
    arguments = function.args
    names = [each.arg for each in [*arguments.posonlyargs, *arguments.args]]
    defaults: list[str] = [REQUIRED] * (len(names) - len(arguments.defaults))
    defaults += [ast.unparse(each) for each in arguments.defaults]
    found = dict(zip(names, defaults, strict=True))
    for each, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        found[each.arg] = ast.unparse(default) if default else REQUIRED
    found.pop("self", None)
    return found
