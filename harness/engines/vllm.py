"""What vLLM's server and its in-process engine have in common (vllm 0.31)."""

from __future__ import annotations

import re

COMPILES = re.compile(r"during inference: .*latency spike")
"""How it reports that a kernel was compiled under load (utils/jit_monitor.py)."""

STARTUP = (
    re.compile(r"Model loading took .* GiB"),  # v1/worker/gpu_model_runner.py
    re.compile(r"Available KV cache memory: "),  # v1/worker/gpu_worker.py
    re.compile(r"KV cache size: .* tokens"),  # v1/core/kv_cache_utils.py
    re.compile(r"Graph capturing finished in "),  # v1/worker/gpu_model_runner.py
    re.compile(r"init engine \(.*\) took "),  # v1/engine/core.py
)
