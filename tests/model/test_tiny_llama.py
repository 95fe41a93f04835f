"""The tiny model is the same on every machine."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

from harness.files import sha256_of
from harness.model import tiny_llama


def sha256_of_tree(paths: Iterable[Path]) -> str:
    """Return one SHA-256 over the names and bytes of ``paths``, whatever their order."""
    digest = hashlib.sha256()
    for path in sorted(paths, key=lambda each: each.name):
        digest.update(f"{path.name}\0{sha256_of(path)}\n".encode())
    return digest.hexdigest()


def test_model_is_the_same_byte_for_byte(tmp_path: Path) -> None:
    for name in ("one", "two"):
        tiny_llama.generate(tmp_path / name)
    digests = {sha256_of_tree((tmp_path / name).iterdir()) for name in ("one", "two")}
    # Changing the model changes every number of the smoke suite: do it on purpose.
    assert digests == {"d468ba5a2c4fcfeb1bfb5f7e536ca231571808e86ff64fc1cbe15f9f717f3c73"}


def test_vocabulary_is_printable_ascii_without_merges() -> None:
    tokenizer = json.loads(tiny_llama.files()["tokenizer.json"])
    vocabulary = tokenizer["model"]["vocab"]
    assert tokenizer["model"]["merges"] == []
    assert sorted(vocabulary.values()) == list(range(98))
    assert json.loads(tiny_llama.files()["config.json"])["vocab_size"] == 98
    ordinary = {token.replace("Ġ", " ") for token in vocabulary} - set(tiny_llama.SPECIAL_TOKENS)
    assert ordinary == {chr(code) for code in range(32, 127)}
