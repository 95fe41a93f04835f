"""Real pulls and builds: what is verified, what is refused, and what a failing step says."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harness.cli.main import main
from harness.errors import ImageError
from harness.runner.describe import describe_images
from harness.runtime.docker_engine import read_facts
from harness.runtime.image_records import ImageRecord
from tests.docker.conftest import BASE, Workshop, rootfs
from tests.docker.registry import Registry, serve

pytestmark = [
    pytest.mark.docker,
    # After a daemon dies, the SDK leaves its sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture
def registry() -> Iterator[Registry]:
    with serve(Registry(rootfs())) as served:
        yield served


@pytest.fixture
def locked(workshop: Workshop, registry: Registry) -> Iterator[Workshop]:
    """A workshop whose base is locked by digest, and comes from the registry."""
    workshop.base = {"name": registry.repository, "tag": "1", "index": registry.digest}
    workshop.replaced = {}
    yield workshop
    workshop.daemon.docker("rmi", "-f", f"{registry.repository}@{registry.digest}", check=False)


def test_base_is_pulled_by_digest_and_built_on(locked: Workshop, registry: Registry) -> None:
    record = locked.store.ensure("tool", rebuild=False)
    assert record.base.digest == registry.digest
    assert record.base.how == "digest of the lock"
    assert record.build_args["BASE"] == f"{registry.repository}@{registry.digest}"
    assert record.labels["b300-repro.pin"] == locked.images.pin("tool")
    assert [step.text.split()[1] for step in record.steps] == ["FROM", "RUN"]
    asked = len(registry.asked)
    assert locked.store.ensure("tool", rebuild=False) == record
    assert len(registry.asked) == asked


def test_published_image_is_run_as_it_is(locked: Workshop, registry: Registry) -> None:
    record = locked.store.ensure("plain", rebuild=False)
    assert record.reference == f"{registry.repository}@{registry.digest}"
    assert record.steps == ()


def test_registry_that_serves_another_image_is_refused(
    locked: Workshop, registry: Registry
) -> None:
    registry.corrupt()
    with pytest.raises(ImageError, match=r"could not pull|refused to pull") as caught:
        locked.store.ensure("plain", rebuild=False)
    assert caught.value.exit_code == 4


def test_digest_that_the_registry_does_not_know(locked: Workshop, registry: Registry) -> None:
    wrong = "sha256:" + "0" * 64
    locked.base = {**locked.base, "index": wrong}
    with pytest.raises(ImageError, match=f"pull {registry.repository}@{wrong}") as caught:
        locked.store.ensure("plain", rebuild=False)
    assert "no image with this digest" in caught.value.usually


def test_tag_without_digest_is_locked_at_its_first_pull(
    locked: Workshop, registry: Registry
) -> None:
    locked.base = {"name": registry.repository, "tag": "1"}
    record = locked.store.ensure("plain", rebuild=False)
    assert record.base.how == "locked at its first pull"
    assert record.base.digest == registry.digest
    assert any(f"add `index: {registry.digest}`" in line for line in locked.progress.lines)
    # If it is gone, it is pulled again by that digest, whatever the tag names by then.
    locked.daemon.docker("rmi", "-f", record.id)
    registry.tag = "another"
    assert locked.store.ensure("plain", rebuild=True).base.digest == registry.digest


def test_pull_that_breaks_off(locked: Workshop, registry: Registry) -> None:
    registry._blobs.clear()
    with pytest.raises(ImageError, match="pull"):
        locked.store.ensure("plain", rebuild=False)


def test_tampered_image_is_refused_before_anything_starts(workshop: Workshop) -> None:
    runtime = workshop.runtime()
    runtime.prepare("tool")
    record = workshop.store.record("tool")
    assert record is not None
    workshop.daemon.docker("tag", BASE, record.reference)
    with pytest.raises(ImageError, match="not the one that was verified") as caught:
        workshop.start("echo ran", runtime)
    assert caught.value.exit_code == 4
    assert not workshop.log.exists()
    listed = "\n".join(describe_images(workshop.images, workshop.store))
    assert "which is NOT the verified" in listed
    made_again = workshop.store.ensure("tool", rebuild=True)
    workshop.store.verify(made_again)


def test_image_that_is_gone_is_made_again(workshop: Workshop) -> None:
    first = workshop.store.ensure("tool", rebuild=False)
    workshop.daemon.docker("rmi", "-f", first.reference)
    assert "no longer present" in "\n".join(describe_images(workshop.images, workshop.store))
    assert workshop.store.present(workshop.store.ensure("tool", rebuild=False).reference)


def test_failing_step_shows_its_own_last_lines(workshop: Workshop) -> None:
    workshop.dockerfile = (
        'ARG BASE\nFROM ${BASE}\nRUN echo first && echo "no such flag" && exit 9\n'
    )
    with pytest.raises(ImageError, match=r"step 2/2 RUN echo first") as caught:
        workshop.store.ensure("tool", rebuild=False)
    message = caught.value.render()
    assert "no such flag" in message
    (log,) = (workshop.folder / "cache" / "logs").glob("build-tool-*.log")
    assert str(log) in message
    assert "exit code: 9" in log.read_text()
    assert workshop.store.record("tool") is None


def test_disk_that_fills_during_a_build(workshop: Workshop) -> None:
    """/dev/full stands in for a full data root: the kernel reports it in the same words."""
    script = "echo more > /dev/full"
    workshop.dockerfile = f"ARG BASE\nFROM ${{BASE}}\nRUN {script}\n"
    with pytest.raises(ImageError, match="No space left on device") as caught:
        workshop.store.ensure("tool", rebuild=False)
    assert "disk of Docker's data root is full" in caught.value.usually


def test_local_base_that_is_not_there(workshop: Workshop) -> None:
    workshop.replaced = {"base": "nowhere:1"}
    with pytest.raises(ImageError, match="--base base=nowhere:1: this engine has no such image"):
        workshop.store.ensure("tool", rebuild=False)


def test_replaced_base_is_said_and_recorded(workshop: Workshop) -> None:
    record = workshop.store.ensure("tool", rebuild=False)
    assert record.base.how == "a local image in its place"
    assert any("not the locked base" in line for line in workshop.progress.lines)


def test_record_survives_its_file(workshop: Workshop) -> None:
    record = workshop.store.ensure("tool", rebuild=False)
    assert workshop.store.record("tool") == record
    assert ImageRecord.model_validate(record.model_dump()) == record


def test_list_says_what_is_here(workshop: Workshop) -> None:
    before = "\n".join(describe_images(workshop.images, workshop.store))
    assert "not present: python -m harness build tool" in before
    workshop.store.ensure("tool", rebuild=False)
    after = "\n".join(describe_images(workshop.images, workshop.store))
    assert ": present, verified, sha256:" in after


def test_no_docker_command(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(ImageError, match="there is no `docker` command"):
        workshop.store.ensure("tool", rebuild=True)


def test_list_of_all_images_as_a_user_types_it(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("B300_REPRO_CACHE", str(workshop.folder / "cache"))
    assert main(["images"]) == 0
    listed = capsys.readouterr().out
    for name in ("vllm:", "deepinfer:", "deepinfer-cuda-13-2:", "vllm-cpu:"):
        assert f"\n{name}" in f"\n{listed}"
    assert listed.count("not present: python -m harness build") == 4


def test_wrong_image_is_refused_before_anything_is_built(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("B300_REPRO_CACHE", str(workshop.folder / "cache"))
    assert main(["build", "vllm-cpu", "depinfer"]) == 2
    assert "did you mean 'deepinfer'" in capsys.readouterr().err
    assert not (workshop.folder / "cache" / "logs").exists()


def test_engine_says_what_it_is(workshop: Workshop) -> None:
    facts = read_facts(workshop.store.client)
    assert facts.version[0].isdigit()
    assert facts.data_root == str(workshop.daemon.folder / "data")
    assert "runc" in facts.runtimes
    assert not facts.gpu_toolkit
