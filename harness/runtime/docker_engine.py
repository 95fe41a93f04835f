"""The connection to this host's Docker engine, what it is, and its errors in the kit's words.

The Docker SDK is imported only here and in the neighbouring modules, and only when containers are
used: the smoke suite runs without it.
"""

from __future__ import annotations

import contextlib
import os
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import requests

from harness.errors import DaemonLostError, HostError, ImageError

if TYPE_CHECKING:
    from docker import DockerClient

API_SECONDS = 60
WHERE = "DOCKER_HOST"


@dataclass(frozen=True)
class DockerFacts:
    """What an engine says about itself."""

    version: str
    storage: str
    data_root: str
    runtimes: tuple[str, ...]
    cdi: bool

    @property
    def gpu_toolkit(self) -> bool:
        """Whether containers can be given GPUs: NVIDIA's runtime, or CDI."""
        return "nvidia" in self.runtimes or self.cdi


def connect() -> DockerClient:
    """Return a client of the engine that DOCKER_HOST names, or of the default socket.

    Raises:
        HostError: none answers, or this user may not use it.
    """
    import docker
    from docker.errors import DockerException

    try:
        client = docker.from_env(timeout=API_SECONDS)
        client.ping()
    except (DockerException, requests.RequestException) as error:
        raise _unreachable(error) from error
    # Nobody closes it by hand: whoever holds a container holds the client.
    weakref.finalize(client, client.api.close)
    return client


def _unreachable(error: Exception) -> HostError:
    where = os.environ.get(WHERE, "unix:///var/run/docker.sock")
    if "Permission denied" in str(error):
        return HostError(
            f"this user may not use the Docker engine at {where}",
            usually="the user is not in the docker group, or logged in before being added to it",
            next_step='sudo usermod -aG docker "$USER", log in again, then: docker info',
        )
    return HostError(
        f"no Docker engine answers at {where}",
        usually=f"the daemon is not running, or {WHERE} names another one",
        next_step="sudo systemctl start docker, then: docker info",
    )


def read_facts(client: DockerClient) -> DockerFacts:
    """Ask the engine what it is."""
    info: Mapping[str, object] = client.info()
    runtimes = info.get("Runtimes")
    return DockerFacts(
        version=str(info.get("ServerVersion", "unknown")),
        storage=str(info.get("Driver", "unknown")),
        data_root=str(info.get("DockerRootDir", "/var/lib/docker")),
        runtimes=tuple(sorted(runtimes)) if isinstance(runtimes, dict) else (),
        cdi=bool(info.get("CDISpecDirs")) and bool(info.get("DiscoveredDevices")),
    )


@contextlib.contextmanager
def engine_errors(doing: str) -> Iterator[None]:
    """Turn the SDK's errors into the kit's.

    Raises:
        DaemonLostError: the daemon no longer answers.
        ImageError: it refuses the request.
    """
    from docker.errors import APIError, DockerException

    try:
        yield
    except APIError as error:
        raise _refused(doing, str(error.explanation or error)) from error
    except (requests.RequestException, DockerException) as error:
        raise lost(doing) from error


def lost(doing: str) -> DaemonLostError:
    """Return the error for a daemon that went away."""
    return DaemonLostError(
        f"the Docker daemon stopped answering when the kit tried to {doing}",
        usually="it was restarted or upgraded, and took its containers with it",
        next_step="docker info; then run the same command again: finished cells are kept",
    )


def _refused(doing: str, explanation: str) -> ImageError:
    text = explanation.lower()
    usually, next_step = "Docker's own message, above, says why", "docker info"
    if "could not select device driver" in text or "unresolvable cdi" in text:
        usually = "NVIDIA's container toolkit is not installed, or not registered with Docker"
        next_step = "sudo nvidia-ctk runtime configure --runtime=docker, then restart Docker"
    elif "no space left on device" in text:
        usually = "the disk of Docker's data root is full"
        next_step = "free some space: docker system df"
    elif "dial tcp" in text or "no such host" in text or "timeout" in text:
        usually = "the registry does not answer: no network, or the daemon lacks the proxy settings"
        next_step = "set the daemon's own proxy and name server; try: docker pull hello-world"
    elif "manifest unknown" in text or "not found" in text:
        usually = "the registry has no image with this digest (any more), or a name is misspelt"
        next_step = "compare docker/images.lock.yaml with: docker buildx imagetools inspect NAME"
    elif "executable file not found" in text:
        usually = "the image is not the one that the recipe was written for"
        next_step = "python -m harness images"
    return ImageError(
        f"Docker refused to {doing}: {explanation}", usually=usually, next_step=next_step
    )
