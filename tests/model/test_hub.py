"""The model's download, against a stand-in of the hub: locked, resumed, verified."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.clock import SystemClock
from harness.errors import HostError, ImageError
from harness.model import hub as hub_module
from harness.model import inventory
from harness.model.hub import HubStore
from harness.suite.model import HubModel
from tests.conftest import QuietProgress
from tests.model.hub_stand_in import COMMIT, Hub, serve

REPOSITORY = "someone/a-model"
WEIGHTS = "model-00001-of-00001.safetensors"
FILES = {"config.json": b"{}", "tokenizer.json": b'{"a": 1}', WEIGHTS: os.urandom(30_000)}


def model(revision: str | None = None) -> HubModel:
    return HubModel(name="a-model", repository=REPOSITORY, revision=revision, bytes=30_010)


@pytest.fixture
def hub() -> Iterator[Hub]:
    with serve(Hub(REPOSITORY, dict(FILES), large=(WEIGHTS,))) as served:
        yield served


@pytest.fixture
def store(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HubStore:
    monkeypatch.delenv("HF_TOKEN", raising=False)
    return HubStore(cache=tmp_path, clock=SystemClock(), progress=QuietProgress(), endpoint=hub.url)


def bodies(hub: Hub) -> list[str]:
    """Return the files whose bytes were fetched."""
    return [
        path.rpartition("/")[2]
        for verb, path, _ in hub.asked
        if verb == "GET" and "resolve" in path
    ]


def test_plain_folder_with_every_file_hashed(hub: Hub, store: HubStore) -> None:
    folder, evidence = store.ensure(model(), None)
    for name, data in FILES.items():
        path = folder / name
        assert path.is_file()
        assert not path.is_symlink()
        assert path.read_bytes() == data
        files = evidence["files"]
        assert isinstance(files, dict)
        assert files[name] == {
            "size": len(data),
            "sha256": hashlib.sha256(data).hexdigest(),
        }
    assert evidence["revision"] == COMMIT
    assert evidence["revision_from"] == "locked at the first download"


def test_second_time_nothing_is_fetched_nor_hashed(
    hub: Hub, store: HubStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = store.ensure(model(), None)
    hub.asked.clear()
    monkeypatch.setattr(inventory, "sha256_of", None)
    assert store.ensure(model(), None) == first
    assert hub.asked == []


def test_unknown_revision_is_locked_and_said(hub: Hub, store: HubStore) -> None:
    store.ensure(model(), None)
    assert isinstance(store.progress, QuietProgress)
    assert any(f"locked to {COMMIT}" in line for line in store.progress.lines)


def test_pinned_revision_is_asked_for(hub: Hub, store: HubStore) -> None:
    _, evidence = store.ensure(model(COMMIT), None)
    assert evidence["revision_from"] == "the suite"
    assert any(f"/revision/{COMMIT}" in path for _, path, _ in hub.asked)


def test_broken_download_goes_on_where_it_was(hub: Hub, store: HubStore) -> None:
    """The hub's client writes 10 MB at a time, and resumes by itself after what it wrote."""
    hub.files = {**FILES, WEIGHTS: os.urandom(25_000_000)}
    hub.cut_after = 21_000_000
    folder, _ = store.ensure(model(), None)
    assert (folder / WEIGHTS).read_bytes() == hub.files[WEIGHTS]
    resumed = [asked for verb, path, asked in hub.asked if path.endswith(WEIGHTS) and asked]
    assert resumed == ["bytes=20971520-"]


def test_file_that_changed_afterwards_is_found(hub: Hub, store: HubStore) -> None:
    folder, _ = store.ensure(model(), None)
    broken = bytearray(FILES[WEIGHTS])
    broken[5] ^= 1
    (folder / WEIGHTS).write_bytes(broken)
    os.utime(folder / WEIGHTS, (1, 1))
    with pytest.raises(ImageError, match="is not the file in") as caught:
        store.ensure(model(), None)
    assert str(folder / WEIGHTS) in caught.value.next_step


def test_file_that_was_cut_off_is_fetched_again(hub: Hub, store: HubStore) -> None:
    folder, _ = store.ensure(model(), None)
    (folder / "tokenizer.json").write_bytes(b"{")
    hub.asked.clear()
    store.ensure(model(), None)
    assert bodies(hub) == ["tokenizer.json"]
    assert (folder / "tokenizer.json").read_bytes() == FILES["tokenizer.json"]


def test_users_own_folder_is_verified_and_left_alone(
    hub: Hub, store: HubStore, tmp_path: Path
) -> None:
    own = tmp_path / "own"
    own.mkdir()
    for name, data in FILES.items():
        (own / name).write_bytes(data)
    folder, evidence = store.ensure(model(), own)
    assert folder == own
    assert evidence["own_folder"] is True
    assert bodies(hub) == []
    assert sorted(path.name for path in own.iterdir()) == sorted(FILES)


def test_users_folder_of_another_model(hub: Hub, store: HubStore, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    with pytest.raises(HostError, match="does not contain someone/a-model"):
        store.ensure(model(), own)


def test_too_little_space_is_said_first(
    hub: Hub, store: HubStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(folder: Path, needed: int, purpose: str) -> None:
        assert needed == sum(map(len, FILES.values()))
        raise HostError(purpose, usually="full", next_step="df")

    monkeypatch.setattr(hub_module, "check_space", refuse)
    with pytest.raises(HostError, match="the rest of model"):
        store.ensure(model(), None)
    assert bodies(hub) == []


def test_gated_model_wants_the_token(
    hub: Hub, store: HubStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.token = "hf_secret"
    with pytest.raises(ImageError, match="refuses someone/a-model") as caught:
        store.ensure(model(), None)
    assert "HF_TOKEN" in caught.value.next_step
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    folder, _ = store.ensure(model(), None)
    kept = [path for path in folder.parent.rglob("*") if path.is_file()]
    assert not any(b"hf_secret" in path.read_bytes() for path in kept)


def test_unknown_model(hub: Hub, store: HubStore) -> None:
    other = model().model_copy(update={"repository": "someone/another"})
    with pytest.raises(ImageError, match="refuses someone/another"):
        store.ensure(other, None)


def test_hub_that_does_not_answer(tmp_path: Path) -> None:
    store = HubStore(
        cache=tmp_path,
        clock=SystemClock(),
        progress=QuietProgress(),
        endpoint="http://127.0.0.1:9",
    )
    with pytest.raises(ImageError, match="could not download someone/a-model"):
        store.ensure(model(), None)
