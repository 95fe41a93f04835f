"""The engine: requests in, steps, outputs as pointers one step late."""

from __future__ import annotations

import itertools
import os
import sys
import time
from types import SimpleNamespace

import numpy as np
from deepinfer._C.engine import RequestOutput, Scheduler, Sequence, acquire, release
from deepinfer.engine.arg_utils import EngineArgs
from deepinfer.engine.group import Group
from deepinfer.sampling_params import SamplingParams
from deepinfer.truth import Truth, fault

STEP_SECONDS = 0.0005
DEFAULT_LENGTH = 4096
VOCABULARY = 129280


class LLMEngine:
    """One rank."""

    def __init__(self, args: EngineArgs) -> None:
        self._rank = args.engine_rank
        assert os.environ["CUDA_VISIBLE_DEVICES"] == str(int(os.environ["CUDA_VISIBLE_DEVICES"]))
        self._nextn = int(os.environ.get("DEEPINFER_USE_NEXTN_DECODE", "5"))
        self._group = Group(args.engine_rank, args.data_parallel_size or args.expert_parallel_size)
        length = args.max_model_len or DEFAULT_LENGTH
        budget = args.max_num_batched_tokens or max(
            length, DEFAULT_LENGTH, args.max_num_seqs * (1 + self._nextn)
        )
        self._max_model_len = length
        self.scheduler = Scheduler(args.max_num_seqs, budget, self._group.reduce)
        self.cache_config = SimpleNamespace(num_gpu_blocks=1000, block_size=128)
        self.multi_modal_processor = object()
        self.generate_step = 0
        self.truth = Truth(self._rank)
        self._late: list[RequestOutput] = []
        self._alive: list[int] = []
        self._unfetched: list[Sequence] = []
        self._added = itertools.count()

    @classmethod
    def from_engine_args(cls, engine_args: EngineArgs) -> LLMEngine:
        if fault("dies-loading", engine_args.engine_rank):
            raise RuntimeError("NCCL GIN is unavailable (made up)")
        return cls(engine_args)

    def add_request(
        self,
        /,
        user_id: str,
        request_id: str,
        sampling_params: dict | SamplingParams | None,
        prompt_token_ids: np.ndarray,
        multi_modal_data: dict | None = None,
        arrival_time: float | None = None,
        extra: dict | None = None,
        enqueue: bool = True,
        chunk_checkpoints: list[int] | None = None,
    ) -> Sequence | None:
        assert isinstance(sampling_params, SamplingParams)
        assert isinstance(prompt_token_ids, np.ndarray)
        assert prompt_token_ids.dtype == np.int32
        if fault("drops", self._rank) and next(self._added) == 1:
            return None
        if prompt_token_ids.max() >= VOCABULARY:
            return None
        sequence = Sequence(
            request_id=request_id,
            prompt_len=int(prompt_token_ids.size),
            max_tokens=sampling_params.max_tokens,
            seed=sampling_params.seq_seed,
            schedulable=multi_modal_data is None,
        )
        if multi_modal_data is not None:
            self._unfetched.append(sequence)
        self.scheduler.add_sequence(sequence)
        return sequence

    def has_unfinished_requests(self) -> bool:
        self.truth.called()
        return bool(self._group.reduce(int(self.scheduler.has_unfinished_seqs()), "max"))

    def get_num_unfinished_requests(self) -> int:
        return self.scheduler.get_num_unfinished_seqs()

    def step(self) -> np.ndarray:
        self._misbehave()
        time.sleep(STEP_SECONDS)
        prefill, chosen = self.scheduler.schedule()
        # Images are fetched after scheduling: a prompt given as a dict waits for the next vote.
        for sequence in self._unfetched:
            sequence.schedulable = True
        self._unfetched = []
        made = [output for each in chosen for output in self._advance(each, prefill=prefill)]
        outputs, self._late = (self._late + made, []) if prefill else (self._late, made)
        self.generate_step += 1
        kind = "prefill" if prefill and chosen else "empty" if not chosen else "decode"
        return self._hand_out(kind, outputs)

    def flush_inflight_reqs(self) -> np.ndarray:
        outputs, self._late = self._late, []
        return self._hand_out("flush", outputs)

    def close(self) -> None:
        self.truth.write()
        self._group.reduce(0, "max")

    def _advance(self, sequence: Sequence, *, prefill: bool) -> list[RequestOutput]:
        """Return the tokens that one step gives a sequence."""
        drafted = 0 if prefill else self._nextn
        seed = sequence.seed + 7 * sequence.produced
        accepted = seed % (drafted + 1) if drafted else 0
        wanted = sequence.max_tokens - bool(fault("wrong-length", self._rank))
        count = min(1 + accepted, max(1, wanted) - sequence.produced)
        outputs = []
        for number in range(count):
            sequence.produced += 1
            finished = sequence.produced >= max(1, wanted)
            if finished:
                sequence.finish_reason = "length" if wanted == sequence.max_tokens else "stop"
            last = number == count - 1
            outputs.append(
                RequestOutput(
                    request_id=sequence.request_id,
                    prompt_len=sequence.prompt_len,
                    token_id=1000 + sequence.produced,
                    finish_reason=sequence.finish_reason,
                    finished=finished,
                    num_output_tokens=sequence.produced,
                    draft_tok=1 + drafted if last else 0,
                    accept_tok=1 + accepted if last else 0,
                )
            )
        return outputs

    def _hand_out(self, kind: str, outputs: list[RequestOutput]) -> np.ndarray:
        # The last step's outputs are released when this step's already exist.
        pointers = acquire(outputs)
        release(self._alive)
        self._alive = pointers
        self.truth.returned(kind, outputs)
        return np.array(self._alive, dtype=np.uint64)

    def _misbehave(self) -> None:
        if (dies := fault("dies", self._rank)) and self.generate_step == dies["step"]:
            print(
                "terminate called after throwing c10::Error (made up)", file=sys.stderr, flush=True
            )
            os._exit(134)
        if (hangs := fault("hangs", self._rank)) and self.generate_step == hangs["step"]:
            print("waiting for a peer that never answers (made up)", flush=True)
            while True:
                time.sleep(60)
