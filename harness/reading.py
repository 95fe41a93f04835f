"""Every file that the kit did not just write itself is opened here: regular, of a size, text.

A file of a run, or one given by hand, can be anything by the time it is read: a pipe that never
ends, a sparse file of 30 GB, bytes of another encoding. Each of them is a message.
"""

from __future__ import annotations

import json
import os
import shlex
import stat
from pathlib import Path
from typing import NoReturn

from harness.errors import UsageError

MIB = 2**20

RECORD_LIMIT = 16 * MIB
"""Bytes of one of the kit's own records. The largest lists each prompt's length: under 1 MiB."""

RESULT_LIMIT = 256 * MIB
"""Bytes of one result. 4,096 requests of 1,024 tokens with the time of every token come to 90 MiB
of times, and to as much again where the generated texts are of escaped characters."""

LOG_LIMIT = 256 * MIB
"""Bytes of one log."""

MEMORY = 768 * MIB
"""What one text may come to as Python objects, by `_weight`: with the interpreter and its libraries
(100 MiB) and the arrays made of the numbers the process stays below 1 GiB."""

COMPRESSED = {b"\x1f\x8b": "gunzip", b"\x28\xb5\x2f\xfd": "unzstd", b"PK\x03\x04": "unzip",
              b"\xfd7zXZ": "unxz"}  # fmt: skip
"""How compressed files begin, and what unpacks them."""


def read_text(path: Path, *, limit: int, replace: bool = False) -> str:
    """Return the text of a regular file of at most ``limit`` bytes; a link to one is followed.

    UTF-8; a byte order mark, as editors on other systems leave it, is no part of the text.
    With ``replace``, bytes that are not text become U+FFFD: for logs.

    Raises:
        UsageError: missing, not a regular file, too large, or not UTF-8.
    """
    data = _bytes(path, limit)
    if replace:
        return data.decode("utf-8-sig", errors="replace")
    if (weight := _weight(data)) > MEMORY:
        _refuse(
            path,
            f"its {len(data):,} bytes would take about {weight // MIB:,} MiB of memory",
            usually="no program that measures writes such a file",
            next_step=f"inspect its beginning: {_command('head', '-c', '300', path)}",
        )
    try:
        _known_encoding(path, data)
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        _refuse(
            path,
            f"byte {error.start:,} is not UTF-8",
            usually="it is binary, or text in another encoding",
            next_step=f"see what it is: {_command('file', path)}",
        )


def _bytes(path: Path, limit: int) -> bytes:
    """Return what a regular file holds; a pipe, a device or a folder is never waited for."""
    try:
        # Before it is opened as well: opening some devices does something.
        _regular(path, os.stat(path).st_mode)  # noqa: PTH116 - Path.stat is the same
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as stream:
            status = os.fstat(descriptor)
            _regular(path, status.st_mode)
            # Files below /proc have no size until they are read.
            data = b"" if status.st_size > limit else stream.read(limit + 1)
            size = max(status.st_size, len(data))
    except (OSError, ValueError) as error:
        _refuse(
            path,
            getattr(error, "strerror", None) or str(error),
            usually="the path has a typo, or the file belongs to another user",
            next_step=f"inspect it: {_command('ls', '-ld', path)}",
        )
    if size > limit:
        _refuse(
            path,
            f"it has more than {limit // MIB} MiB, which no such file needs",
            usually="another program wrote to it, or it is sparse",
            next_step=f"inspect it: {_command('ls', '-lsh', path)}",
        )
    return data


def _regular(path: Path, mode: int) -> None:
    kinds = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket",
             stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}  # fmt: skip
    if not stat.S_ISREG(mode):
        _refuse(
            path,
            f"it is {kinds.get(stat.S_IFMT(mode), 'something else')}, not a regular file",
            usually="a folder or a device was named",
            next_step=f"name the file itself; inspect it: {_command('ls', '-ld', path)}",
        )


def _known_encoding(path: Path, data: bytes) -> None:
    """Refuse what can be named: another Unicode encoding, a compressed file, nothing but zeros."""
    if data and not data.strip(b"\0"):
        _refuse(
            path,
            f"it is {len(data):,} zero bytes",
            usually="the machine lost power while the file was written",
            next_step="measure again: what it held is lost",
        )
    for start, command in COMPRESSED.items():
        if data.startswith(start):
            _refuse(
                path,
                "it is compressed",
                usually="it was packed to be sent",
                next_step=f"unpack it: {_command(command, path)}",
            )
    encoding = json.detect_encoding(data)
    if encoding.startswith(("utf-16", "utf-32")) and _decodes(data, encoding):
        name = encoding[:6].upper()
        _refuse(
            path,
            f"it is {name}, not UTF-8",
            usually="an editor or a shell of another system saved it in its own encoding",
            next_step=f"convert it: iconv -f {encoding.upper()} -t UTF-8 "
            f"{shlex.quote(str(path))} > converted.json",
        )


def _decodes(data: bytes, encoding: str) -> bool:
    try:
        data.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


def _weight(data: bytes) -> int:
    """Return about how many bytes ``data`` comes to at most, as text and as the JSON it may be.

    A text takes 1 byte a character, or 4 where one is beyond Latin-1. A number takes 32 bytes and
    its place in a list, a string 64 and its place, an empty list 64 to 100, an object 250 to 300.
    The marks between them are counted, in texts as well, which is more than there are.
    """
    text = len(data) * (1 if data.isascii() else 4)
    objects = (
        48 * data.count(b",") + 100 * data.count(b"[") + 300 * data.count(b"{")
        + 40 * data.count(b'"')
    )  # fmt: skip
    return max(len(data) + text, text + objects)


def _command(*words: object) -> str:
    return shlex.join(str(word) for word in words)


def _refuse(path: Path, what: str, *, usually: str, next_step: str) -> NoReturn:
    raise UsageError(f"cannot read {path}: {what}", usually=usually, next_step=next_step)
