"""One start of a server: up, warm-ups, its cells, down."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass

import requests

from harness.clock import stamp
from harness.engines.base import ServedEngine
from harness.engines.registry import served
from harness.engines.server import RunningServer
from harness.errors import CellError, DaemonLostError, EngineError, EngineStoppedError
from harness.files import write_text
from harness.process import exit_text
from harness.results.cell_rules import compilations
from harness.results.records import CellRecord, SessionRecord
from harness.runner.context import Context
from harness.runner.failure import failure_of
from harness.runner.server_watch import ServerWatch
from harness.runner.steps import MeasureCell, Scrape, ServerSteps
from harness.stamped_log import log_tail

METRICS_SECONDS = 10.0


@dataclass(frozen=True)
class ServerSession:
    """Carries out one start of a server."""

    context: Context
    steps: ServerSteps

    @property
    def engine(self) -> ServedEngine:
        """What is known about the server's engine."""
        return served(self.steps.session)

    def run(self) -> None:
        """Measure the steps' cells.

        Raises:
            EngineError: the server did not come up, or stopped in between. What was measured
                before stays, and the cell that ran is recorded as failed.
        """
        with self._served() as server:
            watch = ServerWatch(server, self.steps.start.health, self.context.progress.tick)
            record = self._start(watch)
            for step in self.steps.cells:
                self._measure(step, watch, record)

    @contextlib.contextmanager
    def _served(self) -> Iterator[RunningServer]:
        context, start = self.context, self.steps.start
        context.lay_out(start)
        line = context.runtime.line(start.command)
        write_text(self.steps.folder / "command.txt", line + "\n")
        server = RunningServer(
            engine=self.engine,
            runtime=context.runtime,
            command=start.command,
            model_name=context.planned.model.name,
            port=start.port,
            log=start.log,
            owner=context.owner,
            clock=context.clock,
            limits=context.plan.limits,
        )
        try:
            yield server
        finally:
            server.down()

    def _start(self, watch: ServerWatch) -> SessionRecord:
        """Bring the server up, check its tokenizer and warm it for the cells."""
        context, steps = self.context, self.steps
        began = stamp(context.clock.now())
        with context.progress.step(steps.start.title, expected_s=steps.start.expected_s):
            startup = watch.server.up(context.progress.tick)
        checked = self._check_tokenizer(watch)
        self._send_warmups(watch)
        record = SessionRecord(
            recipe=steps.session.recipe,
            number=steps.number,
            began=began,
            command=context.runtime.line(steps.start.command),
            startup=dict(startup),
            warmups=steps.warm_up.results,
            tokenize_checked=checked,
            privileged=context.runtime.is_privileged(steps.start.command),
        )
        context.writer.session(record)
        return record

    def _send_warmups(self, watch: ServerWatch) -> None:
        """Serve the discarded wave of every shape.

        Raises:
            EngineStoppedError, DaemonLostError: the server did not survive it.
            EngineError: the client failed on its own.
        """
        try:
            self.context.run_tool(self.steps.warm_up, "warm up the server", watch.tick)
        except EngineError as error:
            if death := watch.death():
                raise death from error
            raise
        if death := watch.death():
            raise death

    def _check_tokenizer(self, watch: ServerWatch) -> int | None:
        """Compare saved ids with what the server makes of the same text; return how many prompts.

        None: it has no endpoint for that.
        """
        endpoint = self.engine.endpoints.tokenize
        if endpoint is None:
            return None
        url = f"{watch.server.base_url}{endpoint}"
        checked = 0
        for request_set in (cell.requests for cell in self.steps.session.cells):
            manifest = self.context.directory.manifest(request_set)
            path = self.context.directory.path / request_set.prompts_file
            lines = path.read_text(encoding="utf-8").splitlines()
            for sample in manifest.samples if manifest else ():
                saved = json.loads(lines[sample.index])["prompt_token_ids"]
                if self._tokenize(watch, url, sample.text) != saved:
                    raise EngineError(
                        f"the server tokenizes prompt {sample.index} of "
                        f"{request_set.prompts_file} differently",
                        usually="server and client use different tokenizers",
                        next_step=f"compare {path} with POST {url}",
                    )
                checked += 1
        return checked

    def _tokenize(self, watch: ServerWatch, url: str, text: str) -> object:
        try:
            answer = requests.post(
                url, json={"model": self.context.planned.model.name, "prompt": text}, timeout=60
            )
            answer.raise_for_status()
            return answer.json()["tokens"]
        except (requests.RequestException, KeyError, TypeError) as error:
            raise watch.death() or EngineError(
                f"the server does not tokenize: {error}",
                usually="a different release from the suite's is installed",
                next_step=f"try: curl -X POST {url}",
            ) from error

    def _measure(self, step: MeasureCell, watch: ServerWatch, session: SessionRecord) -> None:
        context, cell, server = self.context, step.cell, watch.server
        before, began = server.identity(), stamp(context.clock.now())
        error = self._attempt(step, watch)
        now = stamp(context.clock.now())
        if error is None and compilations(self.steps.folder, self.engine, began, now):
            # vLLM says so itself (0.31 utils/jit_monitor.py): this shape was not warm yet.
            context.progress.say(
                f"  {cell.id}: kernels were compiled while it ran; measuring again"
            )
            self._send_warmups(watch)
            began = stamp(context.clock.now())
            error = self._attempt(step, watch)
        failure = failure_of(error, step.log) if error else None
        record = CellRecord(
            cell=cell.id,
            session=session.folder,
            state="failed" if failure else "ran",
            reason=failure.reason if failure else None,
            cause=failure.cause if failure else None,
            log=context.directory.relative(failure.log) if failure else None,
            began=began,
            ended=stamp(context.clock.now()),
            command=context.runtime.line(step.command),
            engine_before=before,
            engine_after="gone" if isinstance(error, EngineError) else before,
        )
        context.writer.cell(cell, record)
        if failure:
            context.progress.say(f"  {cell.id} was not measured: {failure.reason}")
        if isinstance(error, EngineError):
            raise error

    def _attempt(
        self, step: MeasureCell, watch: ServerWatch
    ) -> CellError | EngineStoppedError | DaemonLostError | None:
        """Run the client once; return why there is no result, if there is none."""
        # What an interrupted attempt left here must not pass for this one's.
        scrapes = [scrape.path for scrape in (step.before, step.after) if scrape]
        for stale in (step.result, step.log, *scrapes):
            stale.unlink(missing_ok=True)
        try:
            with self.context.progress.step(step.title, expected_s=step.expected_s):
                self._scrape(step.before)
                self._run_client(step, watch)
                self._scrape(step.after)
        except CellError as error:
            return watch.death() or error
        except (EngineStoppedError, DaemonLostError) as error:
            return error
        return watch.death()

    def _run_client(self, step: MeasureCell, watch: ServerWatch) -> None:
        """Run the client; a client that leaves no result did not measure, whatever it returns."""
        running = self.context.start(step)
        try:
            code = running.wait(step.limit_s, watch.tick)
        finally:
            running.stop(grace=5)
        if code is None:
            what = f"the client did not finish within {step.limit_s:.0f} s"
        elif code != 0:
            what = f"the client failed ({exit_text(code)}): {log_tail(step.log, 1)}"
        elif not step.result.exists():
            what = f"the client exited with 0 but wrote no result: {log_tail(step.log, 1)}"
        else:
            return
        raise CellError(
            what, usually="the server refused the requests", next_step=f"read {step.log}"
        )

    def _scrape(self, scrape: Scrape | None) -> None:
        """Keep the server's counters; without them a cell is still measured."""
        if scrape is None:
            return
        try:
            answer = requests.get(scrape.url, timeout=METRICS_SECONDS)
            write_text(scrape.path, answer.text)
        except requests.RequestException as error:
            self.context.progress.say(f"  could not read the server's counters: {error}")
