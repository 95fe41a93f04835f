"""Every keyword that the driver passes to DeepInfer, by the file, class and method it goes to.

Checked against the package's source (test_deepinfer_source.py) and against what a real image
reported (tests/inside/test_image_contract.py).
"""

from __future__ import annotations

CALLS = {
    ("entrypoints/llm.py", "LLM", "generate"): ("prompt_token_ids", "sampling_params", "use_tqdm"),
    ("entrypoints/llm.py", "LLM", "__init__"): (
        *("model", "decode_sequence", "expert_parallel_size", "gpu_memory_utilization"),
    ),
    ("engine/llm_engine.py", "LLMEngine", "add_request"): (
        *("user_id", "request_id", "sampling_params", "prompt_token_ids", "multi_modal_data"),
    ),
    ("sampling_params.py", "SamplingParams", "__init__"): (
        *("temperature", "top_p", "top_k", "ignore_eos", "max_tokens", "seq_seed"),
    ),
}

ACCESSORS = (
    *("get_request_id", "get_prompt_len", "get_finish_reason", "get_finished"),
    *("get_draft_tok", "get_accept_tok", "clone"),
)
FIELDS = ("draft_tok", "accept_tok", "finished", "prompt_len", "finish_reason")

ENGRAM = (
    *("group", "num_gpu_bytes", "num_rdma_storage_bytes", "use_cpu_rdma_storage"),
    *("num_allocated_qps", "qp_depth", "restrict_rd_atomic", "allow_hybrid_mode"),
    "explicitly_destroy",
)
"""What the probe for RDMA passes to `deep_ep`'s EngramBuffer."""
