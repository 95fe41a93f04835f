"""Merge what the ranks measured into one record of a wave.

Every rank stamps with the machine's monotonic clock, which all processes of a machine share, so
their times can be compared as they are.
"""

from __future__ import annotations

from typing import Any


def merge(
    wave: dict[str, Any], info: dict[str, Any], drive: str, parts: list[dict[str, Any]]
) -> dict[str, Any]:
    """Return the wave's record: times in seconds from the first start on any rank.

    ``parts`` holds each rank's answer, in the order of the ranks.
    """
    busy = [part for part in parts if part["requests"]]
    began = min(part["start"] for part in busy)
    ended = max(part["end"] for part in busy)
    requests = [
        _request(request, rank, began)
        for rank, part in enumerate(parts)
        for request in part["requests"]
    ]
    return {
        "wave": wave["id"],
        "engine": info["engine"],
        "version": info["version"],
        "drive": drive,
        "output_len": wave["output_len"],
        "concurrency": wave["concurrency"],
        "sampling": info["sampling"],
        "ids_sha256": parts[0]["ids_sha256"],
        "duration_s": ended - began,
        "ranks": [
            {
                "rank": rank,
                "start_s": part["start"] - began,
                "end_s": part["end"] - began,
                "requests": len(part["requests"]),
                "output_tokens": sum(each["output_tokens"] for each in part["requests"]),
                **part["counts"],
            }
            for rank, part in enumerate(parts)
        ],
        "requests": sorted(requests, key=lambda each: int(each["index"])),
    }


def _request(request: dict[str, Any], rank: int, began: float) -> dict[str, Any]:
    """Return a request with its times counted from the wave's beginning; None stays None."""
    times = {
        f"{name}_s": None if request[name] is None else request[name] - began
        for name in ("start", "first_token", "last_token")
    }
    rest = {name: value for name, value in request.items() if f"{name}_s" not in times}
    return {**rest, "rank": rank, **times}
