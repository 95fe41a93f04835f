"""The steps of an engine session: one start, its warm-ups, the cells that it serves."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pydantic import JsonValue

from harness.engines.base import BatchWave
from harness.engines.client import bench_argv, wave_args
from harness.engines.in_process import DRIVER_LOG, EVENTS, JOB, launcher_command, launcher_job
from harness.engines.registry import served
from harness.engines.server import HOST
from harness.results.records import session_folder
from harness.results.run_directory import BATCH, BENCH, METRICS, SERVER_LOG
from harness.runner.planned_run import PlannedRun
from harness.runner.steps import (
    MeasureCell,
    RunBatch,
    Scrape,
    ServerSteps,
    SessionSteps,
    StartServer,
    StopServer,
    WarmUp,
)
from harness.runtime.base import Command, inside_command
from harness.settings.registry import SETTINGS
from harness.suite.plan import WARMUP, Cell, RequestSet, Session
from harness.suite.recipe import Container

CLIENT_LOG = "client.log"


def session_steps(
    run: PlannedRun, session: Session, cells: Sequence[Cell], *, number: int, port: int
) -> SessionSteps:
    """Return the steps of start ``number`` of a recipe's engine, which serves ``cells``.

    A server listens on ``port``.
    """
    if SETTINGS[session.engine].served:
        return _on_a_server(run, session, cells, number, port)
    return _in_process(run, session, cells, number)


def _on_a_server(
    run: PlannedRun, session: Session, cells: Sequence[Cell], number: int, port: int
) -> ServerSteps:
    folder = run.directory.path / session_folder(session.recipe, number)
    url = f"http://{HOST}:{port}"
    engine = served(session)
    server = engine.command(session, run.model, HOST, port)
    return ServerSteps(
        session=session,
        number=number,
        folder=folder,
        start=StartServer(
            title=f"{session.recipe}: start the server",
            expected_s=run.plan.estimates.engine_start_s,
            limit_s=run.plan.limits.engine_start_s,
            command=server,
            log=folder / SERVER_LOG,
            folders=(folder,),
            session=session,
            port=port,
            health=f"{url}{engine.endpoints.health}",
        ),
        warm_up=_warm_up(run, session, run.plan.warmups_for(session, cells), folder, url),
        cells=tuple(_cell(run, session, cell, url) for cell in cells),
        stop=StopServer(session=session, command=server),
    )


def _warm_up(
    run: PlannedRun, session: Session, warmups: Sequence[RequestSet], folder: Path, url: str
) -> WarmUp:
    """Return the step that sends all warm-ups of a session, one after the other."""
    job, results = folder / "warmup.json", folder / WARMUP
    waves: list[JsonValue] = [
        list(
            wave_args(
                run.model,
                requests,
                base_url=url,
                result_dir=str(results),
                result_name=f"{requests.name}.json",
            )
        )
        for requests in warmups
    ]
    return WarmUp(
        title=f"{session.recipe}: warm up {len(warmups)} shapes, discarded",
        expected_s=session.warmup_s,
        limit_s=run.plan.limits.wave_s * len(warmups),
        command=inside_command(
            "waves",
            job,
            run.directory.code,
            role="client",
            image=_client_image(session),
            container=_client_container(session),
            reads=(run.model_folder,),
            writes=(results,),
        ),
        log=folder / "warmup.log",
        folders=(results,),
        jobs={job: {"waves": waves}},
        session=session,
        results=tuple(f"{WARMUP}/{requests.name}.json" for requests in warmups),
    )


def _cell(run: PlannedRun, session: Session, cell: Cell, url: str) -> MeasureCell:
    folder = run.directory.cell(cell)
    argv = bench_argv(
        run.model, cell.requests, base_url=url, result_dir=str(folder), result_name=BENCH
    )
    return MeasureCell(
        title=cell.id,
        expected_s=cell.expected_s,
        limit_s=run.plan.limits.wave_s,
        command=Command(
            role="client",
            image=_client_image(session),
            argv=argv,
            container=_client_container(session),
            reads=(run.model_folder,),
            writes=(folder,),
        ),
        log=folder / CLIENT_LOG,
        folders=(folder,),
        cell=cell,
        before=_scrape(session, url, folder / METRICS[0]),
        after=_scrape(session, url, folder / METRICS[1]),
        result=folder / BENCH,
    )


def _scrape(session: Session, url: str, path: Path) -> Scrape | None:
    metrics = served(session).endpoints.metrics
    return Scrape(url=f"{url}{metrics}", path=path) if metrics else None


def _client_image(session: Session) -> str:
    assert session.client_image is not None, "the planner gives every server's session one"
    return session.client_image


def _client_container(session: Session) -> Container | None:
    return session.container.for_client() if session.container else None


def _in_process(run: PlannedRun, session: Session, cells: Sequence[Cell], number: int) -> RunBatch:
    folder = run.directory.path / session_folder(session.recipe, number)
    job, root = folder / JOB, run.directory.path
    warmups = run.plan.warmups_for(session, cells)
    discarded = [
        BatchWave(id=each.name, requests=each, result=folder / WARMUP / f"{each.name}.json")
        for each in warmups
    ]
    timed = [
        BatchWave(id=cell.id, requests=cell.requests, result=root / cell.folder / BATCH)
        for cell in cells
    ]
    content = launcher_job(
        session,
        [*discarded, *timed],
        run.plan.limits,
        model_folder=run.model.folder,
        run_folder=root,
        folder=folder,
    )
    return RunBatch(
        title=f"{session.recipe}: start the engine",
        expected_s=run.plan.estimates.engine_start_s,
        limit_s=run.plan.limits.engine_start_s,
        command=launcher_command(
            session, job, run.directory.code, model_folder=run.model.folder, run_folder=root
        ),
        log=folder / DRIVER_LOG,
        jobs={job: content},
        session=session,
        number=number,
        folder=folder,
        events=folder / EVENTS,
        warmups=warmups,
        cells=tuple(cells),
    )
