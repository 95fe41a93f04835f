"""A table of named objects, looked up by what a person wrote in a file."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Generic, Protocol, TypeVar

from pydantic_core import PydanticCustomError

from harness.validation import nearest


class Named(Protocol):
    """Anything with a name."""

    @property
    def name(self) -> str:
        """The name that files and plans use for it."""
        ...


Entry = TypeVar("Entry", bound=Named)


class Registry(Generic[Entry]):
    """Entries by name, in the order in which they were added."""

    def __init__(self, kind: str, entries: Iterable[Entry]) -> None:
        self.kind = kind
        self._entries: dict[str, Entry] = {}
        for entry in entries:
            self.add(entry)

    @property
    def names(self) -> tuple[str, ...]:
        """All names."""
        return tuple(self._entries)

    def add(self, entry: Entry) -> None:
        """Add ``entry``.

        Raises:
            ValueError: its name is taken; with two meanings of a name, results would be ambiguous.
        """
        if entry.name in self._entries:
            msg = f"{self.kind} {entry.name!r} already exists"
            raise ValueError(msg)
        self._entries[entry.name] = entry

    @contextlib.contextmanager
    def added(self, *entries: Entry) -> Iterator[None]:
        """Add ``entries`` for the duration of the block."""
        before = dict(self._entries)
        try:
            for entry in entries:
                self.add(entry)
            yield
        finally:
            self._entries = before

    def __getitem__(self, name: str) -> Entry:
        """Return the entry of that name, which `checked` has validated."""
        return self._entries[name]

    def checked(self, name: str) -> str:
        """Return ``name``, for a field of a model.

        Raises:
            PydanticCustomError: no entry has that name; it lists the names and suggests one.
        """
        if name not in self._entries:
            known = ", ".join(self._entries)
            msg = f"must be one of {known}, not {name!r}{nearest(name, self._entries)}"
            raise PydanticCustomError("unknown_name", "{message}", {"message": msg})
        return name
