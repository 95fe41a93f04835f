"""One start of a server: up, warm-ups, its cells, down."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import requests

from harness.clock import stamp
from harness.engines.client import ClientModel, bench_argv, wave_args
from harness.engines.registry import served
from harness.engines.server import HOST, RunningServer, free_port
from harness.errors import CellError, EngineError
from harness.files import make_folder, write_json, write_text
from harness.results.cell_rules import compilations
from harness.results.records import CellRecord, SessionRecord
from harness.results.run_directory import BENCH, METRICS, SERVER_LOG
from harness.runner.context import Context
from harness.runtime.base import Command, inside_command
from harness.stamped_log import log_tail
from harness.suite.plan import Cell, RequestSet, Session
from harness.suite.recipe import Container

METRICS_SECONDS = 10.0
CLIENT_LOG = "client.log"


def warmup_command(session: Session, model: ClientModel, job: Path, code: Path) -> Command:
    """Return the command that sends all warm-ups of a session, one after the other."""
    return inside_command(
        "waves",
        job,
        code,
        role="client",
        image=session.image,
        container=_client_container(session),
        reads=(Path(model.folder),),
        writes=(job.parent / "warmup",),
    )


def warmup_job(
    warmups: Sequence[RequestSet], model: ClientModel, base_url: str, folder: Path
) -> dict[str, list[list[str]]]:
    """Return the job file's content for `harness.inside.waves`."""
    return {
        "waves": [
            list(
                wave_args(
                    model,
                    request_set,
                    base_url=base_url,
                    result_dir=str(folder),
                    result_name=f"{request_set.name}.json",
                )
            )
            for request_set in warmups
        ]
    }


def cell_command(
    session: Session, model: ClientModel, request_set: RequestSet, base_url: str, folder: Path
) -> Command:
    """Return the client's command of one cell."""
    argv = bench_argv(
        model, request_set, base_url=base_url, result_dir=str(folder), result_name=BENCH
    )
    return Command(
        role="client",
        image=session.image,
        argv=argv,
        container=_client_container(session),
        reads=(Path(model.folder),),
        writes=(folder,),
    )


def _client_container(session: Session) -> Container | None:
    return session.container.for_client() if session.container else None


@dataclass(frozen=True)
class ServerSession:
    """Carries one planned session out on a server; `cells` are those still to be measured."""

    context: Context
    session: Session

    def run(self, cells: list[Cell]) -> None:
        """Measure ``cells``.

        Raises:
            EngineError: the server did not come up, or stopped in between. What was measured
                before stays, and the cell that ran is recorded as failed.
        """
        number, folder = self.context.directory.new_session(self.session.recipe)
        with self._served(folder) as server:
            record = self._start(number, folder, server, cells)
            for cell in cells:
                self._measure(cell, server, record)

    @contextlib.contextmanager
    def _served(self, folder: Path) -> Iterator[RunningServer]:
        port = free_port()
        command = served(self.session).command(self.session, self.context.model, HOST, port)
        write_text(folder / "command.txt", self.context.runtime.line(command) + "\n")
        server = RunningServer(
            engine=served(self.session),
            runtime=self.context.runtime,
            command=command,
            model_name=self.context.model.name,
            port=port,
            log=folder / SERVER_LOG,
            owner=self.context.owner,
            clock=self.context.clock,
            limits=self.context.plan.limits,
        )
        try:
            yield server
        finally:
            server.down()

    def _start(
        self, number: int, folder: Path, server: RunningServer, cells: list[Cell]
    ) -> SessionRecord:
        """Bring the server up, check its tokenizer and warm it for ``cells``."""
        context, session = self.context, self.session
        began = stamp(context.clock.now())
        estimates = context.plan.estimates
        with context.progress.step(
            f"{session.recipe}: start the server", expected_s=estimates.engine_start_s
        ):
            startup = server.up(context.progress.tick)
        checked = self._check_tokenizer(server)
        job = folder / "warmup.json"
        warmups = context.plan.warmups_for(session, cells)
        results = make_folder(folder / "warmup")
        write_json(job, warmup_job(warmups, context.model, server.base_url, results))
        self._send_warmups(folder, len(warmups))
        record = SessionRecord(
            recipe=session.recipe,
            number=number,
            began=began,
            command=context.runtime.line(server.command),
            startup=dict(startup),
            warmups=tuple(f"warmup/{request_set.name}.json" for request_set in warmups),
            tokenize_checked=checked,
        )
        context.directory.save_session(record)
        return record

    def _send_warmups(self, folder: Path, shapes: int) -> None:
        """Serve the discarded wave of every shape."""
        context, session = self.context, self.session
        with context.progress.step(
            f"{session.recipe}: warm up {shapes} shapes, discarded",
            expected_s=session.warmup_s,
        ):
            context.run_tool(
                warmup_command(
                    session, context.model, folder / "warmup.json", context.directory.code
                ),
                folder / "warmup.log",
                "warm the server up",
                context.plan.limits.wave_s * shapes,
            )

    def _check_tokenizer(self, server: RunningServer) -> int:
        """Compare saved ids with what the server makes of the same text; return how many."""
        checked = 0
        for request_set in (cell.requests for cell in self.session.cells):
            manifest = self.context.directory.manifest(request_set)
            path = self.context.directory.path / request_set.prompts_file
            lines = path.read_text(encoding="utf-8").splitlines()
            for sample in manifest.samples if manifest else ():
                saved = json.loads(lines[sample.index])["prompt_token_ids"]
                if self._tokenize(server, sample.text) != saved:
                    raise EngineError(
                        f"the server makes other tokens of prompt {sample.index} of "
                        f"{request_set.prompts_file} than those that the other engine gets",
                        usually="server and client use different tokenizers",
                        next_step=f"compare {path} with POST {server.base_url}/tokenize",
                    )
                checked += 1
        return checked

    def _tokenize(self, server: RunningServer, text: str) -> object:
        url = f"{server.base_url}/tokenize"
        try:
            answer = requests.post(
                url, json={"model": self.context.model.name, "prompt": text}, timeout=60
            )
            answer.raise_for_status()
            return answer.json()["tokens"]
        except (requests.RequestException, KeyError, TypeError) as error:
            raise EngineError(
                f"the server does not tokenize: {error}",
                usually="it stopped right after it became ready",
                next_step=f"try: curl -X POST {url}",
            ) from error

    def _measure(self, cell: Cell, server: RunningServer, record: SessionRecord) -> None:
        context = self.context
        folder = context.directory.cell(cell)
        make_folder(folder)
        command = cell_command(self.session, context.model, cell.requests, server.base_url, folder)
        reason, began, before = self._attempt(cell, command, folder, server)
        engine = served(self.session)
        session_folder = server.log.parent
        if reason is None and compilations(
            session_folder, engine, began, stamp(context.clock.now())
        ):
            # vLLM says so itself (0.31 utils/jit_monitor.py): this shape was not warm yet.
            context.progress.say(f"  {cell.id}: kernels were compiled meanwhile; once more, warm")
            self._send_warmups(server.log.parent, len(record.warmups))
            reason, began, before = self._attempt(cell, command, folder, server)
        cell_record = CellRecord(
            cell=cell.id,
            session=record.folder,
            state="failed" if reason else "ran",
            reason=reason,
            began=began,
            ended=stamp(context.clock.now()),
            command=context.runtime.line(command),
            engine_before=before,
            engine_after=server.identity() if server.alive() else "gone",
        )
        context.directory.save_cell(cell, cell_record)
        if reason:
            context.progress.say(f"  {cell.id} was not measured: {reason}")
        if not server.alive():
            raise EngineError(
                f"the server stopped during {cell.id}; its last lines:\n{log_tail(server.log)}",
                usually="too little memory, or a crash in a kernel of this workload",
                next_step=f"read {server.log}",
            )

    def _attempt(
        self, cell: Cell, command: Command, folder: Path, server: RunningServer
    ) -> tuple[str | None, str, str]:
        """Run the client once; return why there is no result, when it began and the engine."""
        # What an interrupted attempt left here must not pass for this one's.
        for stale in (folder / BENCH, folder / CLIENT_LOG, *(folder / name for name in METRICS)):
            stale.unlink(missing_ok=True)
        began, before = stamp(self.context.clock.now()), server.identity()
        with self.context.progress.step(cell.id, expected_s=cell.expected_s):
            self._scrape(server, folder / METRICS[0])
            try:
                self._run_client(command, folder, server)
                self._scrape(server, folder / METRICS[1])
            except CellError as error:
                return error.what, began, before
        return None, began, before

    def _run_client(self, command: Command, folder: Path, server: RunningServer) -> None:
        """Run the client; a client that leaves no result did not measure, whatever it returns."""
        context = self.context
        log = folder / CLIENT_LOG
        running = context.runtime.start(command, log=log, owner=context.owner)

        def tick() -> None:
            context.progress.tick()
            if not server.alive():
                msg = "the server stopped while the client was running"
                raise CellError(msg, usually="a crash", next_step=f"read {server.log}")

        limit = context.plan.limits.wave_s
        try:
            code = running.wait(limit, tick)
        finally:
            running.stop(grace=5)
        if code is None:
            what = f"the client did not finish within {limit:.0f} s"
        elif code != 0:
            what = f"the client ended with exit {code}: {log_tail(log, 1)}"
        elif not (folder / BENCH).exists():
            what = f"the client ended with exit 0 but wrote no result: {log_tail(log, 1)}"
        else:
            return
        raise CellError(what, usually="the server refused the requests", next_step=f"read {log}")

    def _scrape(self, server: RunningServer, path: Path) -> None:
        """Keep the server's counters; without them a cell is still measured."""
        try:
            answer = requests.get(f"{server.base_url}/metrics", timeout=METRICS_SECONDS)
            write_text(path, answer.text)
        except requests.RequestException as error:
            self.context.progress.say(f"  no counters from the server: {error}")
