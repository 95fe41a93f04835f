"""Sampling parameters, as the real package takes them."""

from __future__ import annotations

import random


class SamplingParams:
    """The parts of a request that the double uses: its length and its seed."""

    def __init__(
        self,
        temperature: float = 1.0,
        top_p: float = 1.0,
        top_k: int = -1,
        ignore_eos: bool = False,
        max_tokens: int = 16,
        logprobs: bool = False,
        prompt_logprobs: bool = False,
        top_logprobs: int = 0,
        first_n_token_no_eos: int = 0,
        eos_id: int = 0,
        so_args: dict | None = None,
        golden_token_ids: list[int] | None = None,
        seq_seed: int | None = None,
    ) -> None:
        if top_k < -1 or top_k == 0:
            raise ValueError(
                f"top_k must be -1 (disable), or between 1 and int32 max, got {top_k}."
            )
        self.max_tokens = max_tokens
        self.ignore_eos = ignore_eos
        self.eos_id = eos_id
        self.seq_seed = random.getrandbits(64) if seq_seed is None else seq_seed
