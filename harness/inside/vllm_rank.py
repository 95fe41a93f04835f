"""vLLM's offline engine as one rank; several are independent replicas that share the prompts.

The engine is stepped by hand (`LLMEngine.add_request` and `step`), so that each token can be
timestamped. At most its share of the concurrency is in flight; the next request is added when one
ends, as the server's client does with its semaphore.
"""

from __future__ import annotations

import os
import time
from collections import deque
from typing import Any

from harness.inside.backend import Prompt, request_record


class VllmRank:
    """One replica, on its share of this machine's cores."""

    def __init__(self, job: dict[str, Any], rank: int) -> None:
        self._rank, self._ranks = rank, int(job["ranks"])
        cores = sorted(os.sched_getaffinity(0))
        if 1 < self._ranks <= len(cores):
            # Before vLLM is imported: replicas on the same cores would wait for each other.
            os.sched_setaffinity(0, cores[rank :: self._ranks])
        import vllm
        from vllm import EngineArgs, LLMEngine
        from vllm.utils.argparse_utils import FlexibleArgumentParser

        parser = EngineArgs.add_cli_args(FlexibleArgumentParser())
        flags = ["--model", job["model"], *job["engine"]["flags"]]
        self._version = vllm.__version__
        self._engine = LLMEngine.from_engine_args(
            EngineArgs.from_cli_args(parser.parse_args(flags))
        )
        self._sampling = self._engine.model_config.get_diff_sampling_param()

    def info(self) -> dict[str, Any]:
        config = self._engine.vllm_config
        return {
            "engine": "vllm",
            "version": self._version,
            "sampling": self._sampling,
            "kv_cache_tokens": (config.cache_config.num_gpu_blocks or 0)
            * config.cache_config.block_size,
            "max_num_seqs": config.scheduler_config.max_num_seqs,
        }

    def run(self, wave: dict[str, Any], prompts: list[Prompt]) -> dict[str, Any]:
        from vllm import SamplingParams
        from vllm.inputs import TokensPrompt

        engine, waiting = self._engine, deque(prompts)
        requests: dict[str, dict[str, Any]] = {}
        began = time.perf_counter()

        def add_next() -> None:
            index, ids = waiting.popleft()
            params = SamplingParams(
                **{**self._sampling, "max_tokens": wave["output_len"], "ignore_eos": True}
            )
            name = f"{wave['id']}#{index}"
            requests[name] = request_record(index, len(ids), time.perf_counter())
            engine.add_request(name, TokensPrompt(prompt_token_ids=ids), params)

        for _ in range(min(len(waiting), self._share(wave["concurrency"]))):
            add_next()
        while engine.has_unfinished_requests():
            outputs = engine.step()
            now = time.perf_counter()
            for output in outputs:
                record, completion = requests[output.request_id], output.outputs[0]
                if len(completion.token_ids) > record["output_tokens"]:
                    record["first_token"] = record["first_token"] or now
                    record["last_token"] = now
                    record["output_tokens"] = len(completion.token_ids)
                if output.finished:
                    record["prompt_tokens"] = len(output.prompt_token_ids or ())
                    record["finish_reason"] = completion.finish_reason
                    if waiting:
                        add_next()
        return {
            "start": began,
            "end": time.perf_counter(),
            "counts": {},
            "requests": list(requests.values()),
        }

    def close(self) -> None:
        """Nothing to do: the process ends."""

    def _share(self, concurrency: int) -> int:
        return concurrency // self._ranks + int(self._rank < concurrency % self._ranks)
