"""Drive vLLM's offline engine in-process through one session: warm-ups, then cells.

The engine is stepped by hand (`LLMEngine.add_request` and `step`), so that each token can be
stamped. At most `concurrency` requests are in flight; the next one is added when one ends, as the
server's client does with its semaphore.

Job: ``{"engine_args": [...], "events": path, "waves": [{"id", "ids", "output_len", "concurrency",
"result"}]}``. Times in results are seconds since the wave began.
"""

from __future__ import annotations

import json
import time
from collections import deque
from pathlib import Path
from typing import Any

import vllm
from vllm import EngineArgs, LLMEngine, SamplingParams
from vllm.inputs import TokensPrompt
from vllm.utils.argparse_utils import FlexibleArgumentParser

from harness.inside.jobs import Events, read_job, write_atomic


def build_engine(engine_args: list[str]) -> LLMEngine:
    """Start the engine from the flags that ``vllm serve`` would get."""
    parser = EngineArgs.add_cli_args(FlexibleArgumentParser())
    return LLMEngine.from_engine_args(EngineArgs.from_cli_args(parser.parse_args(engine_args)))


def run_wave(engine: LLMEngine, wave: dict[str, Any], sampling: dict[str, Any]) -> dict[str, Any]:
    """Run one wave and return its record: one entry for each request, in the prompts' order."""
    lines = Path(wave["ids"]).read_text(encoding="utf-8").splitlines()
    prompts = [json.loads(line)["prompt_token_ids"] for line in lines]
    waiting = deque(range(len(prompts)))
    requests: dict[str, dict[str, Any]] = {}
    began = time.perf_counter()

    def add_next() -> None:
        index = waiting.popleft()
        params = SamplingParams(
            **{**sampling, "max_tokens": wave["output_len"], "ignore_eos": True}
        )
        name = f"{wave['id']}#{index}"
        record = {"index": index, "start_s": time.perf_counter() - began, "token_times_s": []}
        requests[name] = record
        engine.add_request(name, TokensPrompt(prompt_token_ids=prompts[index]), params)

    while waiting and len(requests) < wave["concurrency"]:
        add_next()
    while engine.has_unfinished_requests():
        outputs = engine.step()
        now = time.perf_counter() - began
        for output in outputs:
            record = requests[output.request_id]
            completion = output.outputs[0]
            new = len(completion.token_ids) - len(record["token_times_s"])
            record["token_times_s"] += [now] * new
            if output.finished:
                record["prompt_tokens"] = len(output.prompt_token_ids or ())
                record["output_tokens"] = len(completion.token_ids)
                record["finish_reason"] = completion.finish_reason
                if waiting:
                    add_next()
    return {
        "wave": wave["id"],
        "vllm": vllm.__version__,
        "output_len": wave["output_len"],
        "concurrency": wave["concurrency"],
        "sampling": sampling,
        "duration_s": time.perf_counter() - began,
        "requests": sorted(requests.values(), key=lambda record: int(record["index"])),
    }


def main() -> None:
    """Run the job: one engine start, then its waves in order, each with one atomic result."""
    job = read_job()
    events = Events(Path(job["events"]))
    events.emit("starting")
    engine = build_engine(job["engine_args"])
    sampling = engine.model_config.get_diff_sampling_param()
    cache = engine.vllm_config.cache_config
    events.emit(
        "ready",
        vllm=vllm.__version__,
        sampling=sampling,
        kv_cache_tokens=(cache.num_gpu_blocks or 0) * cache.block_size,
    )
    for wave in job["waves"]:
        events.emit("wave-started", wave=wave["id"])
        result = run_wave(engine, wave, sampling)
        write_atomic(Path(wave["result"]), json.dumps(result, allow_nan=False) + "\n")
        events.emit("wave-finished", wave=wave["id"], duration_s=result["duration_s"])
    events.emit("finished")


if __name__ == "__main__":
    main()
