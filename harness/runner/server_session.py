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
from harness.errors import CellError, EngineError
from harness.files import write_text
from harness.results.cell_rules import compilations
from harness.results.records import CellRecord, SessionRecord
from harness.runner.context import Context
from harness.runner.steps import MeasureCell, Scrape, ServerSteps
from harness.stamped_log import log_tail

METRICS_SECONDS = 10.0


@dataclass(frozen=True)
class ServerSession:
    """Carries one start of a server out."""

    context: Context
    steps: ServerSteps

    @property
    def engine(self) -> ServedEngine:
        """What is known of the server's engine."""
        return served(self.steps.session)

    def run(self) -> None:
        """Measure the steps' cells.

        Raises:
            EngineError: the server did not come up, or stopped in between. What was measured
                before stays, and the cell that ran is recorded as failed.
        """
        with self._served() as server:
            record = self._start(server)
            for step in self.steps.cells:
                self._measure(step, server, record)

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

    def _start(self, server: RunningServer) -> SessionRecord:
        """Bring the server up, check its tokenizer and warm it for the cells."""
        context, steps = self.context, self.steps
        began = stamp(context.clock.now())
        with context.progress.step(steps.start.title, expected_s=steps.start.expected_s):
            startup = server.up(context.progress.tick)
        checked = self._check_tokenizer(server)
        self._send_warmups()
        record = SessionRecord(
            recipe=steps.session.recipe,
            number=steps.number,
            began=began,
            command=context.runtime.line(steps.start.command),
            startup=dict(startup),
            warmups=steps.warm_up.results,
            tokenize_checked=checked,
        )
        context.writer.session(record)
        return record

    def _send_warmups(self) -> None:
        """Serve the discarded wave of every shape."""
        self.context.run_tool(self.steps.warm_up, "warm the server up")

    def _check_tokenizer(self, server: RunningServer) -> int | None:
        """Compare saved ids with what the server makes of the same text; return how many.

        None: it has no endpoint that tells.
        """
        path_there = self.engine.endpoints.tokenize
        if path_there is None:
            return None
        url = f"{server.base_url}{path_there}"
        checked = 0
        for request_set in (cell.requests for cell in self.steps.session.cells):
            manifest = self.context.directory.manifest(request_set)
            path = self.context.directory.path / request_set.prompts_file
            lines = path.read_text(encoding="utf-8").splitlines()
            for sample in manifest.samples if manifest else ():
                saved = json.loads(lines[sample.index])["prompt_token_ids"]
                if self._tokenize(url, sample.text) != saved:
                    raise EngineError(
                        f"the server tokenizes prompt {sample.index} of "
                        f"{request_set.prompts_file} differently",
                        usually="server and client use different tokenizers",
                        next_step=f"compare {path} with POST {url}",
                    )
                checked += 1
        return checked

    def _tokenize(self, url: str, text: str) -> object:
        try:
            answer = requests.post(
                url, json={"model": self.context.planned.model.name, "prompt": text}, timeout=60
            )
            answer.raise_for_status()
            return answer.json()["tokens"]
        except (requests.RequestException, KeyError, TypeError) as error:
            raise EngineError(
                f"the server does not tokenize: {error}",
                usually="it stopped right after it became ready",
                next_step=f"try: curl -X POST {url}",
            ) from error

    def _measure(self, step: MeasureCell, server: RunningServer, record: SessionRecord) -> None:
        context, cell = self.context, step.cell
        reason, began, before = self._attempt(step, server)
        now = stamp(context.clock.now())
        if reason is None and compilations(self.steps.folder, self.engine, began, now):
            # vLLM says so itself (0.31 utils/jit_monitor.py): this shape was not warm yet.
            context.progress.say(f"  {cell.id}: kernels were compiled meanwhile; once more, warm")
            self._send_warmups()
            reason, began, before = self._attempt(step, server)
        cell_record = CellRecord(
            cell=cell.id,
            session=record.folder,
            state="failed" if reason else "ran",
            reason=reason,
            began=began,
            ended=stamp(context.clock.now()),
            command=context.runtime.line(step.command),
            engine_before=before,
            engine_after=server.identity() if server.alive() else "gone",
        )
        context.writer.cell(cell, cell_record)
        if reason:
            context.progress.say(f"  {cell.id} was not measured: {reason}")
        if not server.alive():
            raise EngineError(
                f"the server stopped during {cell.id}; its last lines:\n{log_tail(server.log)}",
                usually="too little memory, or a crash in a kernel of this workload",
                next_step=f"read {server.log}",
            )

    def _attempt(self, step: MeasureCell, server: RunningServer) -> tuple[str | None, str, str]:
        """Run the client once; return why there is no result, when it began and the engine."""
        # What an interrupted attempt left here must not pass for this one's.
        scrapes = [scrape.path for scrape in (step.before, step.after) if scrape]
        for stale in (step.result, step.log, *scrapes):
            stale.unlink(missing_ok=True)
        began, before = stamp(self.context.clock.now()), server.identity()
        with self.context.progress.step(step.title, expected_s=step.expected_s):
            self._scrape(step.before)
            try:
                self._run_client(step, server)
                self._scrape(step.after)
            except CellError as error:
                return error.what, began, before
        return None, began, before

    def _run_client(self, step: MeasureCell, server: RunningServer) -> None:
        """Run the client; a client that leaves no result did not measure, whatever it returns."""
        context = self.context
        running = context.start(step)

        def tick() -> None:
            context.progress.tick()
            if not server.alive():
                msg = "the server stopped while the client was running"
                raise CellError(msg, usually="a crash", next_step=f"read {server.log}")

        try:
            code = running.wait(step.limit_s, tick)
        finally:
            running.stop(grace=5)
        if code is None:
            what = f"the client did not finish within {step.limit_s:.0f} s"
        elif code != 0:
            what = f"the client ended with exit {code}: {log_tail(step.log, 1)}"
        elif not step.result.exists():
            what = f"the client ended with exit 0 but wrote no result: {log_tail(step.log, 1)}"
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
            self.context.progress.say(f"  no counters from the server: {error}")
