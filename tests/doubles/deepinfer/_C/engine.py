"""Outputs as pointers into a pool, and the scheduler with its votes."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable

CAP = 10000
"""Outputs that may be alive at once (csrc/engine/outputs.hpp)."""
PREFILL_ATTEMPT_INTERVAL = int(os.environ.get("DEEPINFER_PREFILL_ATTEMPT_INTERVAL", "70"))
PREFILL_ANY_ATTEMPT_INTERVAL = int(os.environ.get("DEEPINFER_PREFILL_ANY_ATTEMPT_INTERVAL", "100"))

_pool: dict[int, RequestOutput] = {}
_next = 0


@dataclasses.dataclass
class RequestOutput:
    """One token of a request."""

    request_id: str
    prompt_len: int
    token_id: int
    finish_reason: str
    finished: bool
    num_output_tokens: int
    draft_tok: int
    accept_tok: int

    @staticmethod
    def clone(ptr: int) -> RequestOutput:
        return dataclasses.replace(_pool[int(ptr)])

    @staticmethod
    def get_request_id(ptr: int) -> str:
        return _pool[int(ptr)].request_id

    @staticmethod
    def get_prompt_len(ptr: int) -> int:
        return _pool[int(ptr)].prompt_len

    @staticmethod
    def get_token_id(ptr: int) -> int:
        return _pool[int(ptr)].token_id

    @staticmethod
    def get_finish_reason(ptr: int) -> str:
        return _pool[int(ptr)].finish_reason

    @staticmethod
    def get_finished(ptr: int) -> bool:
        return _pool[int(ptr)].finished

    @staticmethod
    def get_num_output_tokens(ptr: int) -> int:
        return _pool[int(ptr)].num_output_tokens

    @staticmethod
    def get_draft_tok(ptr: int) -> int:
        return _pool[int(ptr)].draft_tok

    @staticmethod
    def get_accept_tok(ptr: int) -> int:
        return _pool[int(ptr)].accept_tok


def acquire(outputs: list[RequestOutput]) -> list[int]:
    """Put outputs into the pool and return their pointers."""
    global _next
    if len(_pool) + len(outputs) > CAP:
        raise RuntimeError(f"RequestOutputPool: more than {CAP} outputs are alive")
    pointers = list(range(_next, _next + len(outputs)))
    _pool.update(zip(pointers, outputs, strict=True))
    _next += len(outputs)
    return pointers


def release(pointers: list[int]) -> None:
    """Forget outputs: their pointers dangle from now on."""
    for pointer in pointers:
        del _pool[pointer]


@dataclasses.dataclass
class Sequence:
    """One request on its way."""

    request_id: str
    prompt_len: int
    max_tokens: int
    seed: int
    schedulable: bool
    produced: int = 0
    finish_reason: str = ""


class Scheduler:
    """Decides whether all ranks prefill or decode: never both in one step."""

    def __init__(
        self, max_num_seqs: int, max_num_batched_tokens: int, reduce: Callable[[int, str], int]
    ) -> None:
        self.decode_step = 0
        self.waiting: list[Sequence] = []
        self.running: list[Sequence] = []
        self._max_num_seqs = max_num_seqs
        self._max_num_batched_tokens = max_num_batched_tokens
        self._reduce = reduce

    def add_sequence(self, sequence: Sequence) -> None:
        self.waiting.append(sequence)

    def has_unfinished_seqs(self) -> bool:
        return bool(self.waiting or self.running)

    def get_num_unfinished_seqs(self) -> int:
        return len(self.waiting) + len(self.running)

    def get_num_preempted_seqs(self) -> int:
        return 0

    def schedule(self) -> tuple[bool, list[Sequence]]:
        """Return whether this is a prefill step, and its sequences."""
        prefill, chosen = self._vote()
        if prefill:
            self.decode_step = 0
        else:
            # Only a decode step frees what has finished.
            self.running = [each for each in self.running if not each.finish_reason]
            chosen = list(self.running)
            self.decode_step += 1
        return prefill, chosen

    def _vote(self) -> tuple[bool, list[Sequence]]:
        any_point = self.decode_step != 0 and self.decode_step % PREFILL_ANY_ATTEMPT_INTERVAL == 0
        all_point = self.decode_step % PREFILL_ATTEMPT_INTERVAL == 0
        if not (any_point or all_point):
            return False, []
        want = any(each.schedulable for each in self.waiting)
        agreed = self._reduce(int(want), "max" if any_point else "min")
        if not agreed:
            return False, []
        chosen = self._prefill_batch() if want else []
        if not self._reduce(int(bool(chosen)), "max"):
            return False, []
        for each in chosen:
            self.waiting.remove(each)
        self.running += chosen
        return True, chosen

    def _prefill_batch(self) -> list[Sequence]:
        chosen: list[Sequence] = []
        tokens = 0
        for each in self.waiting:
            full = len(self.running) + len(chosen) >= self._max_num_seqs
            if full or tokens + each.prompt_len > self._max_num_batched_tokens:
                break
            if each.schedulable:
                chosen.append(each)
                tokens += each.prompt_len
        return chosen
