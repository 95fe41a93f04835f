"""DeepInfer in-process, as plain data: the launcher's command and job.

Only planning: this version prints them and does not run them. One process is one data-parallel
rank, and the environment must be there before the package is imported.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import JsonValue

from harness.engines.base import BatchWave, wave_job
from harness.runtime.base import Command, inside_command
from harness.suite.plan import Session


def launcher_command(
    session: Session, job: Path, code: Path, *, model_folder: str, run_folder: Path
) -> Command:
    """Return the command that starts all ranks inside one container."""
    return inside_command(
        "launcher",
        job,
        code,
        role="driver",
        image=session.image,
        env=session.env,
        container=session.container,
        reads=(Path(model_folder), run_folder / "prompts"),
        writes=(job.parent, *(run_folder / cell.folder for cell in session.cells)),
    )


def launcher_job(
    session: Session, model_folder: str, run_folder: Path, waves: list[BatchWave], events: Path
) -> dict[str, JsonValue]:
    """Return the job file's content: keyword arguments of ``deepinfer.LLM`` and the waves."""
    return {
        "backend": "deepinfer",
        "drive": session.drive,
        "ranks": session.args["data_parallel_size"],
        "engine_args": {"model": model_folder, **session.args},
        "events": str(events),
        "waves": [wave_job(wave, run_folder) for wave in waves],
    }
