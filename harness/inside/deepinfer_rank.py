"""DeepInfer as one data-parallel rank, driven in one of two ways.

``generate`` is the call that the package offers: `LLM.generate`, whose tokens have no timestamps.
``step`` adds requests and steps the engine by hand, so that tokens can be timestamped and no decode
steps run before the first prefill: through `generate`, a request can be scheduled only after the
first step, which votes on prefill, and the next vote comes 70 steps later (deepinfer 0.1.0:
entrypoints/llm.py _add_request, engine/llm_engine.py step, csrc/engine/scheduler.hpp).

All ranks call `has_unfinished_requests` and `step` equally often: both are collective.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from harness.inside.backend import Prompt, request_record

BLOCK = 128
"""Tokens in a block of the KV cache (deepinfer 0.1.0, model_metadata_utils.py)."""

SAMPLED = ("temperature", "top_p", "top_k")
"""The part of a model's generation config that both engines know."""

ENDED = "length"
FAKED = "DEEPINFER_FORCE_"
"""Variables that replace the model's routing with a made-up one."""


class DeepInferRank:
    """One `deepinfer.LLM`: one GPU, one of the ranks that step together."""

    def __init__(self, job: dict[str, Any], rank: int) -> None:
        if faked := sorted(name for name in os.environ if name.startswith(FAKED)):
            msg = f"{', '.join(faked)} would replace the model's routing with a made-up one"
            raise RuntimeError(msg)
        import deepinfer
        from deepinfer._C.engine import RequestOutput
        from deepinfer.entrypoints.llm import LLM
        from deepinfer.sampling_params import SamplingParams

        self._version = deepinfer.__version__
        self._output, self._params = RequestOutput, SamplingParams
        self._drive = job["drive"]
        self._settings = job["engine"]
        self._sampling = generation_config(Path(job["model"]))
        self._llm = LLM(
            model=job["model"], decode_sequence=False, engine_rank=rank, **self._settings
        )
        self._engine = self._llm.llm_engine

    def info(self) -> dict[str, Any]:
        return {
            "engine": "deepinfer",
            "version": self._version,
            "sampling": self._sampling,
            "kv_cache_tokens": self._engine.cache_config.num_gpu_blocks * BLOCK,
            "max_num_seqs": self._settings["max_num_seqs"],
        }

    def run(self, wave: dict[str, Any], prompts: list[Prompt]) -> dict[str, Any]:
        return (self._generate if self._drive == "generate" else self._step)(wave, prompts)

    def close(self) -> None:
        self._llm.close()

    def _sampling_params(self, wave: dict[str, Any], index: int) -> Any:  # noqa: ANN401
        """Return a request's own parameters: `add_request` writes into them."""
        return self._params(
            **self._sampling,
            ignore_eos=True,
            max_tokens=wave["output_len"],
            seq_seed=wave["seed"] + index,
        )

    def _generate(self, wave: dict[str, Any], prompts: list[Prompt]) -> dict[str, Any]:
        ids = [np.asarray(each, dtype=np.int32) for _, each in prompts]
        params = [self._sampling_params(wave, index) for index, _ in prompts]
        before = self._counters()
        began = time.perf_counter()
        results = self._llm.generate(prompt_token_ids=ids, sampling_params=params, use_tqdm=False)
        ended = time.perf_counter()
        if len(results) != len(prompts):
            msg = f"LLM.generate returned {len(results)} of {len(prompts)} requests"
            raise RuntimeError(msg)
        requests = []
        for (index, each), outputs in zip(prompts, results, strict=True):
            record = request_record(index, len(each), began)
            for output in outputs:
                record["output_tokens"] += 1
                _count(record, output.draft_tok, output.accept_tok)
                if output.finished:
                    record["prompt_tokens"] = output.prompt_len
                    record["finish_reason"] = output.finish_reason
            requests.append(record)
        return self._result(began, ended, before, requests)

    def _step(self, wave: dict[str, Any], prompts: list[Prompt]) -> dict[str, Any]:
        engine = self._engine
        # The same on all ranks: prefill is voted for at multiples of it.
        engine.scheduler.decode_step = 0
        before = self._counters()
        requests: dict[str, dict[str, Any]] = {}
        began = time.perf_counter()
        for index, ids in prompts:
            name = f"{wave['id']}#{index}"
            requests[name] = request_record(index, len(ids), time.perf_counter())
            added = engine.add_request(
                user_id="0",
                request_id=name,
                sampling_params=self._sampling_params(wave, index),
                prompt_token_ids=np.asarray(ids, dtype=np.int32),
                # None makes it schedulable immediately; `LLM.generate`'s empty dict does not.
                multi_modal_data=None,
            )
            if added is None:
                msg = f"request {name} was dropped: the engine rejects one of its token ids"
                raise RuntimeError(msg)
        while True:
            unfinished = engine.has_unfinished_requests()
            outputs = engine.step() if unfinished else engine.flush_inflight_reqs()
            self._stamp(outputs, requests, time.perf_counter())
            if not unfinished:
                break
        if lost := [name for name, each in requests.items() if not each["finish_reason"]]:
            msg = f"{len(lost)} of {len(requests)} requests never finished, including {lost[0]}"
            raise RuntimeError(msg)
        # The loop ends a few empty steps after the last token.
        ended = max((each["last_token"] for each in requests.values()), default=began)
        return self._result(began, ended, before, list(requests.values()))

    def _stamp(
        self, outputs: Iterable[Any], requests: dict[str, dict[str, Any]], now: float
    ) -> None:
        """Take a step's outputs: pointers that are valid until the next step."""
        output = self._output
        for pointer in outputs:
            record = requests[output.get_request_id(pointer)]
            record["first_token"] = record["first_token"] or now
            record["last_token"] = now
            record["output_tokens"] += 1
            _count(record, output.get_draft_tok(pointer), output.get_accept_tok(pointer))
            if output.get_finished(pointer):
                record["prompt_tokens"] = output.get_prompt_len(pointer)
                record["finish_reason"] = output.get_finish_reason(pointer)

    def _counters(self) -> dict[str, int]:
        """Return the engine's own counters; they only grow."""
        return {
            "engine_steps": self._engine.generate_step,
            "preempted": self._engine.scheduler.get_num_preempted_seqs(),
        }

    def _result(
        self,
        began: float,
        ended: float,
        before: dict[str, int],
        requests: list[dict[str, Any]],
    ) -> dict[str, Any]:
        if wrong := [each for each in requests if each["finish_reason"] != ENDED]:
            first = wrong[0]
            msg = (
                f"{len(wrong)} of {len(requests)} requests did not end at their full length: "
                f"request {first['index']} ended with {first['finish_reason']!r}"
            )
            raise RuntimeError(msg)
        counts = {name: value - before[name] for name, value in self._counters().items()}
        return {"start": began, "end": ended, "counts": counts, "requests": requests}


def _count(record: dict[str, Any], draft_tok: int, accept_tok: int) -> None:
    """Count drafts: the last token of a sequence in a step carries both numbers, each plus one.

    Other tokens carry none; a step without drafts carries one and one (csrc/engine/outputs.hpp).
    """
    if draft_tok > 1:
        record["drafted"] += draft_tok - 1
        record["accepted"] += accept_tok - 1
        record["drafting_steps"] += 1


def generation_config(model: Path) -> dict[str, Any]:
    """Return the model's own sampling settings, as `vllm serve` uses them by default.

    vLLM's 0 for ``top_k`` means all tokens, as DeepInfer's -1 does.
    """
    path = model / "generation_config.json"
    if not path.exists():
        return {}
    given = json.loads(path.read_text(encoding="utf-8"))
    settings = {name: given[name] for name in SAMPLED if given.get(name) is not None}
    if settings.get("top_k") == 0:
        settings["top_k"] = -1
    return settings
