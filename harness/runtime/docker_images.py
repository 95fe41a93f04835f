"""Pull, build and verify images, and keep a record of what was verified.

A published image is verified by its digest. One that is built on this host has none: its record
holds the id that the engine gave it (the digest of its configuration), and its base was verified
when pulled.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import filelock

from harness.clock import Clock
from harness.console import Progress
from harness.errors import ImageError
from harness.files import make_folder, read_record, write_json
from harness.process import Owner
from harness.runtime.build import Builder, plan_build
from harness.runtime.docker_engine import engine_errors
from harness.runtime.image_records import BaseRecord, FirstPull, How, ImageRecord, StepRecord
from harness.runtime.images import Base, Images

if TYPE_CHECKING:
    from docker import DockerClient

PULL_SECONDS = 900.0


@dataclass(frozen=True)
class ImageStore:
    """The images of one engine, and the records of those that the kit prepared."""

    client: DockerClient
    images: Images
    cache: Path
    owner: Owner
    clock: Clock
    progress: Progress

    def record(self, image: str) -> ImageRecord | None:
        """Return the record of ``image`` as the lock now defines it; None if there is none."""
        path = self._path(image)
        return read_record(path, ImageRecord) if path.exists() else None

    def present(self, reference: str) -> str | None:
        """Return the id of the image that ``reference`` names in the engine, if there is one."""
        from docker.errors import ImageNotFound

        with engine_errors(f"look for {reference}"):
            try:
                found = str(self.client.images.get(reference).id)
            except ImageNotFound:
                return None
        return found

    def ensure(self, image: str, *, rebuild: bool) -> ImageRecord:
        """Pull or build ``image`` unless it is present; return its verified record.

        Raises:
            ImageError: it could not be pulled or built, or is not what the record or lock says.
        """
        lock = self._path(image).with_suffix(".lock")
        make_folder(lock.parent)
        with filelock.FileLock(lock):
            record = None if rebuild else self.record(image)
            if record is not None and self.present(record.reference) is not None:
                self.verify(record)
                return record
            made = (
                self._build(image, rebuild=rebuild)
                if self.images.is_built(image)
                else self._pulled(image)
            )
            write_json(self._path(image), made.model_dump(mode="json"))
            return made

    def verify(self, record: ImageRecord) -> None:
        """Compare what the engine has under the record's name with the record.

        Raises:
            ImageError: it is another image, or gone.
        """
        found = self.present(record.reference)
        if found != record.id:
            raise ImageError(
                f"image {record.image} is not the one that was verified: {record.reference} is "
                f"{found or 'gone'}, but the record says {record.id}",
                usually="somebody has built, tagged or removed an image under this name since",
                next_step=f"rebuild it: python -m harness build {record.image} --rebuild",
            )

    def _path(self, image: str) -> Path:
        return self.cache / "images" / f"{image}-{self.images.pin(image)[:12]}.json"

    def _pulled(self, image: str) -> ImageRecord:
        base = self._base(image)
        return ImageRecord(
            image=image,
            pin=self.images.pin(image),
            reference=base.reference,
            id=base.id,
            size_bytes=self._size(base.reference),
            base=base,
        )

    def _build(self, image: str, *, rebuild: bool) -> ImageRecord:
        base = self._base(image)
        # What was verified is what is built on, even if the lock has only a tag.
        planned = plan_build(image, self.images, self.cache)
        plan = replace(planned, args={**planned.args, "BASE": base.reference}, rebuild=rebuild)
        result = Builder(self.cache, self.owner, self.clock, self.progress).build(plan)
        with engine_errors(f"inspect {plan.tag}"):
            built = self.client.images.get(plan.tag)
        return ImageRecord(
            image=image,
            pin=plan.pin,
            reference=plan.tag,
            id=str(built.id),
            size_bytes=built.attrs["Size"],
            base=base,
            sources=tuple(source.requirement for source in self.images.image(image).sources),
            build_args=dict(plan.args),
            labels=dict(built.labels),
            seconds=result.seconds,
            steps=tuple(
                StepRecord(text=step.text, seconds=step.seconds, cached=step.cached)
                for step in result.steps
            ),
            log=str(result.log),
        )

    def _base(self, image: str) -> BaseRecord:
        """Return the base of ``image``, pulled and verified."""
        name = self.images.image(image).base
        if name in self.images.replaced:
            return self._local_base(name, self.images.replaced[name])
        base = self.images.file.bases[name]
        locked = self._first_pull(base)
        digest = base.digest or (locked.digest if locked else None)
        if digest is None:
            return self._pull_by_tag(name, base)
        reference = f"{base.name}@{digest}"
        if self.present(reference) is None:
            self._pull(base.name, digest)
        how: How = "digest of the lock" if base.digest else "locked at its first pull"
        return self._verified(name, base, digest, how)

    def _verified(self, name: str, base: Base, digest: str, how: How) -> BaseRecord:
        """Check that the engine holds the base under exactly this digest."""
        reference = f"{base.name}@{digest}"
        with engine_errors(f"inspect {reference}"):
            found = self.client.images.get(reference)
        digests = {each.partition("@")[2] for each in found.attrs.get("RepoDigests") or ()}
        if digest not in digests:
            raise ImageError(
                f"{base.name}:{base.tag} is not the image in the lock: the engine has "
                f"{', '.join(sorted(digests)) or 'no digest for it'}, the lock says {digest}",
                usually="the digest in docker/images.lock.yaml is wrong, or a mirror serves "
                "another image",
                next_step=f"docker buildx imagetools inspect {base.name}:{base.tag}",
            )
        return BaseRecord(name=name, reference=reference, id=str(found.id), digest=digest, how=how)

    def _local_base(self, name: str, reference: str) -> BaseRecord:
        found = self.present(reference)
        if found is None:
            raise ImageError(
                f"--base {name}={reference}: this engine has no such image",
                usually="it was not imported yet, or was imported into another engine",
                next_step=f"docker image inspect {reference}",
            )
        self.progress.say(
            f"Base {name} is replaced with the local image {reference}, not the locked base."
        )
        return BaseRecord(
            name=name,
            reference=reference,
            id=found,
            digest=None,
            how="a local image in its place",
        )

    def _pull_by_tag(self, name: str, base: Base) -> BaseRecord:
        """Pull a base whose digest was unknown, and lock it."""
        self._pull(base.name, base.tag)
        with engine_errors(f"inspect {base.reference}"):
            found = self.client.images.get(f"{base.name}:{base.tag}")
        digest = next(
            each.partition("@")[2]
            for each in found.attrs["RepoDigests"]
            if each.startswith(f"{base.name}@")
        )
        locked = FirstPull(reference=base.reference, digest=digest)
        write_json(self._first_pull_path(base), locked.model_dump(mode="json"))
        self.progress.say(
            f"{base.reference} had no digest in docker/images.lock.yaml; it is now locked, for "
            f"this host, as {digest}. To lock it for everyone, add `index: {digest}` there."
        )
        return self._verified(name, base, digest, "locked at its first pull")

    def _first_pull_path(self, base: Base) -> Path:
        name = f"{base.name}-{base.tag}".replace("/", "-").replace(":", "-")
        return self.cache / "images" / f"first-pull-{name}.json"

    def _first_pull(self, base: Base) -> FirstPull | None:
        path = self._first_pull_path(base)
        return read_record(path, FirstPull) if path.exists() else None

    def _pull(self, name: str, digest_or_tag: str) -> None:
        """Pull one image, updating the progress shown."""
        joined = "@" if digest_or_tag.startswith("sha256:") else ":"
        reference = f"{name}{joined}{digest_or_tag}"
        with (
            self.progress.step(f"pull {reference}", expected_s=PULL_SECONDS),
            engine_errors(f"pull {reference}"),
        ):
            for line in self.client.api.pull(name, tag=digest_or_tag, stream=True, decode=True):
                if "error" in line:
                    raise _pull_failed(reference, str(line["error"]))
                self.progress.tick()

    def _size(self, reference: str) -> int:
        with engine_errors(f"inspect {reference}"):
            size: int = self.client.images.get(reference).attrs["Size"]
        return size


def _pull_failed(reference: str, reason: str) -> ImageError:
    if "no space left on device" in reason:
        return ImageError(
            f"could not pull {reference}: {reason}",
            usually="the disk of Docker's data root is full",
            next_step="free some space (docker system df), then run the same command again",
        )
    return ImageError(
        f"could not pull {reference}: {reason}",
        usually="the registry does not answer, or has no image with this digest",
        next_step=f"try by hand: docker pull {reference}",
    )
