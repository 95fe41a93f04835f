"""Strict models of files, and one sentence, with its line, for a file that breaks its model."""

from __future__ import annotations

import difflib
import re
import types
import typing
from collections.abc import Iterable
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from harness import yaml
from harness.errors import UsageError

Model = TypeVar("Model", bound=BaseModel)

Identifier = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.-]*$")]
Count = Annotated[int, Field(ge=1)]
Reason = Annotated[str, Field(min_length=1)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Strict(BaseModel):
    """Base of all file models: nothing unknown, nothing coerced, nothing changed later."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


def validate(document: yaml.Document, model: type[Model]) -> Model:
    """Check ``document`` against ``model``.

    Raises:
        UsageError: with the line of the first value that is wrong.
    """
    try:
        return model.model_validate(document.data)
    except ValidationError as error:
        # A misspelt key is two errors, unknown and missing: the unknown one names the mistake.
        errors = error.errors()
        first = next((each for each in errors if each["type"] == "extra_forbidden"), errors[0])
        location = tuple(part for part in first["loc"])
        line = document.line_of(location)
        if first["type"] == "value_error":
            line = _line_of_name(document, location, _message(first)) or line
        where = ".".join(str(part) for part in location) or "the file"
        message = _message(first)
        if first["type"] == "extra_forbidden":
            key = str(location[-1])
            message = f"unknown key{nearest(key, _fields_at(model, location[:-1]))}"
        more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
        raise UsageError(
            f"{document.path}:{line}: {where}: {message}{more}",
            usually="the file breaks one of its own rules"
            if first["type"] == "value_error"
            else "a key is misspelt, is at the wrong depth, or has a value of the wrong kind",
            next_step=f"open {document.path} at line {line}",
        ) from error


def _line_of_name(document: yaml.Document, location: yaml.Location, message: str) -> int | None:
    """Return the line of the key that a rule's message names, below ``location``."""
    words = set(re.findall(r"[\w.-]+", message))
    for place, line in document.lines.items():
        if place[: len(location)] == location and place and place[-1] in words:
            return line
    return None


def _message(error: ErrorDetails) -> str:
    """Say what is wrong with a value as someone who edits YAML would put it."""
    given = error["input"]
    match error["type"]:
        case "model_type" | "dict_type" | "model_attributes_type":
            return "a block of keys is expected here"
        case "string_type":
            return f"text is expected, not {given!r}: put it in quotes"
        case "literal_error":
            expected = error["ctx"]["expected"]
            allowed = re.findall(r"'([^']+)'", expected) or [expected]
            near = nearest(str(given), allowed)
            return f"must be one of {', '.join(allowed)}, not {given!r}{near}"
        case _:
            return error["msg"].removeprefix("Value error, ")


def nearest(word: str, known: Iterable[str]) -> str:
    """Return ``, did you mean 'x'?`` if one of ``known`` is close, else an empty string."""
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f", did you mean {close[0]!r}?" if close else ""


def _fields_at(model: type[BaseModel], location: tuple[str | int, ...]) -> list[str]:
    """Return the names that are valid at ``location``, walking the models' annotations."""
    current: Any = model
    for part in location:
        if isinstance(part, int):  # an index: the annotation was stripped to its items already
            continue
        if isinstance(current, type) and issubclass(current, BaseModel):
            if part not in current.model_fields:
                return []
            current = current.model_fields[str(part)].annotation
        else:
            current = (
                typing.get_args(current)[-1] if typing.get_origin(current) is dict else current
            )
        current = _model_within(current)
    is_model = isinstance(current, type) and issubclass(current, BaseModel)
    return list(current.model_fields) if is_model else []


def _model_within(annotation: Any) -> Any:  # noqa: ANN401 - annotations have no common type
    """Strip Annotated, Optional and tuple off an annotation; leave dict for its keys."""
    origin = typing.get_origin(annotation)
    if origin is typing.Annotated or origin is tuple:
        return _model_within(typing.get_args(annotation)[0])
    if origin in (typing.Union, types.UnionType):
        return _model_within(typing.get_args(annotation)[0])
    return annotation
