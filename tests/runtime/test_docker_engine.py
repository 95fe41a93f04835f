"""Errors of the Docker engine and its SDK, as quoted here, in the kit's own words."""

from __future__ import annotations

import pytest
from docker.errors import APIError, DockerException

from harness.errors import EngineError, HostError, ImageError
from harness.runtime.docker_engine import _unreachable, engine_errors


def test_no_permission_on_the_socket() -> None:
    text = "('Connection aborted.', PermissionError(13, 'Permission denied'))"
    error = _unreachable(DockerException(f"Error while fetching server API version: {text}"))
    assert isinstance(error, HostError)
    assert "may not use the Docker engine" in error.what
    assert "usermod -aG docker" in error.next_step


def test_no_daemon() -> None:
    text = "('Connection aborted.', FileNotFoundError(2, 'No such file or directory'))"
    error = _unreachable(DockerException(f"Error while fetching server API version: {text}"))
    assert "no Docker engine answers" in error.what
    assert error.next_step == "sudo systemctl start docker, then: docker info"


@pytest.mark.parametrize(
    ("explanation", "usually"),
    [
        ('could not select device driver "" with capabilities: [[gpu]]', "container toolkit"),
        ("failed to inject devices: unresolvable CDI devices nvidia.com/gpu=all", "toolkit"),
        ("mkdir /data/overlay2/x: no space left on device", "data root is full"),
        ("manifest for debian@sha256:00 not found: manifest unknown", "no image with this digest"),
        (
            'Get "https://registry.example/v2/": dial tcp: lookup registry.example: no such host',
            "registry does not answer",
        ),
        ("something else", "Docker's own message"),
    ],
)
def test_refusals_say_what_they_usually_mean(explanation: str, usually: str) -> None:
    with (
        pytest.raises(ImageError, match="Docker refused to start server") as caught,
        engine_errors("start server"),
    ):
        raise APIError("500 Server Error", explanation=explanation)
    assert explanation in caught.value.what
    assert usually in caught.value.usually


def test_daemon_that_went_away() -> None:
    with (
        pytest.raises(EngineError, match="stopped answering") as caught,
        engine_errors("follow a container"),
    ):
        raise DockerException("broken pipe")
    assert caught.value.exit_code == 5
