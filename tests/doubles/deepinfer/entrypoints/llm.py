"""The offline entry point."""

from __future__ import annotations

import copy
import itertools

import numpy as np
from deepinfer._C.engine import RequestOutput
from deepinfer.engine.arg_utils import EngineArgs
from deepinfer.engine.llm_engine import LLMEngine
from deepinfer.sampling_params import SamplingParams


class LLM:
    """One engine, with the call that takes all requests at once."""

    def __init__(
        self,
        model: str,
        tokenizer: str | None = None,
        trust_remote_code: bool = False,
        expert_parallel_size: int = 1,
        revision: str | None = None,
        tokenizer_revision: str | None = None,
        seed: int = 0,
        gpu_memory_utilization: float = 0.9,
        decode_sequence: bool = True,
        **kwargs: object,
    ) -> None:
        assert not decode_sequence, "the double has no tokenizer"
        args = EngineArgs(
            model=model,
            expert_parallel_size=expert_parallel_size,
            seed=seed,
            gpu_memory_utilization=gpu_memory_utilization,
            offline_inference=True,
            **kwargs,  # type: ignore[arg-type]
        )
        self.llm_engine = LLMEngine.from_engine_args(args)
        self._numbers = itertools.count()

    def generate(
        self,
        prompts: str | list[str] | None = None,
        sampling_params: SamplingParams | list[SamplingParams] | None = None,
        prompt_token_ids: list | None = None,
        use_tqdm: bool = True,
        multi_modal_data: dict | list[dict] | None = None,
    ) -> list[list[RequestOutput] | str]:
        assert prompt_token_ids is not None
        assert isinstance(sampling_params, list)
        for ids, params in zip(prompt_token_ids, sampling_params, strict=True):
            self.llm_engine.add_request(
                user_id="0",
                request_id=str(next(self._numbers)),
                sampling_params=copy.deepcopy(params),
                prompt_token_ids=np.asarray(ids, dtype=np.int32),
                multi_modal_data={"image_bytes": [], "image_sizes": []},
            )
        results: dict[str, list[RequestOutput]] = {}
        unfinished = True
        while unfinished:
            unfinished = self.llm_engine.has_unfinished_requests()
            engine = self.llm_engine
            for pointer in engine.step() if unfinished else engine.flush_inflight_reqs():
                output = RequestOutput.clone(pointer)
                results.setdefault(output.request_id, []).append(output)
        return [results[name] for name in sorted(results, key=int)]

    def close(self) -> None:
        self.llm_engine.close()
