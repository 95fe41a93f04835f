"""Engine arguments, as the real package takes them."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass
class EngineArgs:
    """Names and defaults are the real ones; the double uses a few of them."""

    model: str
    served_model_name: str = "deepinfer-model"
    tokenizer: str | None = None
    trust_remote_code: bool = False
    load_format: str = "auto"
    seed: int = 0
    max_model_len: int | None = None
    data_parallel_size: int = 0
    context_parallel_size: int = 1
    expert_parallel_size: int = 1
    engram_parallel_size: int = 0
    engine_rank: int = 0
    engine_group_rank: int = 0
    gpu_memory_utilization: float = 0.90
    max_num_batched_tokens: int | None = None
    max_num_seqs: int = 256
    disable_log_stats: bool = False
    revision: str | None = None
    tokenizer_revision: str | None = None
    stop_preempted_request: bool = True
    engine_type: object = None
    chunked_prefill: bool = False
    ignore_len: int = 128 << 20
    tokens_per_block: int = -1
    lookahead_tokens: int = 0
    offline_inference: bool = False
