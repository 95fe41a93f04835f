"""YAML as these files need it: 1.2 scalars, no duplicate keys, and a line number for every value.

PyYAML reads YAML 1.1, where ``no`` is false and ``1:30`` is ninety. The scalar rules are replaced
by those of the YAML 1.2 core schema (https://yaml.org/spec/1.2.2/#103-core-schema).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from harness.errors import UsageError

Location = tuple[str | int, ...]
"""The path to a value: mapping keys and list indices from the top of the document."""


class _Loader(yaml.SafeLoader):
    """SafeLoader with the YAML 1.2 core schema's scalars."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012


for _tag, _pattern, _first in (
    ("bool", r"^(?:true|True|TRUE|false|False|FALSE)$", "tTfF"),
    ("null", r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
    ("int", r"^[-+]?[0-9]+$", "-+0123456789"),
    ("float", r"^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$", "-+.0123456789"),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(_pattern), list(_first))


def _decimal(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> int:  # noqa: ARG001
    """Read an integer in base ten; PyYAML's own reads a leading zero as octal."""
    return int(node.value)


_Loader.add_constructor("tag:yaml.org,2002:int", _decimal)


@dataclass(frozen=True)
class Document:
    """A parsed file and the line of each of its values."""

    path: Path
    data: Any
    lines: dict[Location, int]

    def line_of(self, location: Location) -> int:
        """Return the 1-based line of ``location``, or of its nearest enclosing value."""
        while location and location not in self.lines:
            location = location[:-1]
        return self.lines.get(location, 1)


def read(path: Path) -> Document:
    """Read one YAML file.

    Raises:
        UsageError: missing, not YAML, or with a duplicate key; it names the file and the line.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"cannot read {path}: {error}",
            usually="the file is missing, or is not UTF-8 text",
            next_step=f"check with: ls -l {path.parent}",
        ) from error
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        lines: dict[Location, int] = {}
        if node is not None:
            _note_lines(path, node, (), lines, frozenset())
        data = loader.construct_document(node) if node is not None else None
    except yaml.reader.ReaderError as error:
        raise UsageError(
            f"{path}: not text: {error.reason} at position {error.position}",
            usually="a control character was pasted into the file, or it is not text at all",
            next_step=f"find it with: grep --perl-regexp --line-number '[^[:print:]\\t]' {path}",
        ) from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise UsageError(
            f"{path}:{line}: not valid YAML: {error.problem or error.context}",
            usually="an indentation, a quote or a colon is wrong on this line or the one before",
            next_step=f"open {path} at line {line}",
        ) from error
    return Document(path, data, lines)


def _note_lines(
    path: Path,
    node: yaml.Node,
    location: Location,
    lines: dict[Location, int],
    above: frozenset[int],
) -> None:
    if id(node) in above:
        raise _refused(path, node, "an alias refers to a block that contains it")
    above |= {id(node)}
    lines.setdefault(location, node.start_mark.line + 1)
    if isinstance(node, yaml.MappingNode):
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise _refused(path, key_node, "a key must be a word, not a list or a block")
            line = key_node.start_mark.line + 1
            inner = (*location, key_node.value)
            if inner in lines:
                raise UsageError(
                    f"{path}:{line}: duplicate key {key_node.value!r}, "
                    f"first on line {lines[inner]}",
                    usually="a block was copied and its key was not renamed",
                    next_step=f"remove or rename one of them in {path}",
                )
            lines[inner] = line
            _note_lines(path, value_node, inner, lines, above)
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            _note_lines(path, item, (*location, index), lines, above)


def _refused(path: Path, node: yaml.Node, what: str) -> UsageError:
    line = node.start_mark.line + 1
    return UsageError(
        f"{path}:{line}: {what}",
        usually="YAML allows it, but these files never need it",
        next_step=f"open {path} at line {line}",
    )
