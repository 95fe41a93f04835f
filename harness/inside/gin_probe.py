"""Whether GPU-initiated networking works here: a tiny Engram buffer, one row from each peer.

A backend of `harness.inside.rank`: the answer "ready" means that it works; otherwise the rank
fails with DeepEP's own message. It does what DeepInfer does while it loads (deepinfer 0.1.0,
parallel_utils/userbuffer.py allocate_engram, with deepinfer-ep 2.5.0), before any weights are
loaded.
"""

from __future__ import annotations

import os
from typing import Any

from harness.inside.backend import Prompt
from harness.inside.ports import DEEPINFER_PORT_SHIFT

ROWS = 128
"""Rows that each rank holds."""
HIDDEN = 256
"""Elements of a row, as in the model's Engram tables."""

NCCL_SETTINGS = {
    "EP_AVOID_RECORD_STREAM": "1",
    "NCCL_CUMEM_ENABLE": "1",
    "NCCL_NO_CACHE": "NCCL_WIN_STRIDE,NCCL_GIN_TYPE,NCCL_GIN_GDAKI_MAX_QP_RD_ATOMIC",
    "NCCL_PXN_DISABLE": "1",
}
"""What DeepInfer sets in each of its workers (deepinfer 0.1.0, worker/runtime_config.py)."""


class GinProbe:
    """One rank of the probe, on one GPU."""

    def __init__(self, job: dict[str, Any], rank: int) -> None:
        os.environ.update(NCCL_SETTINGS)
        import torch
        import torch.distributed as dist
        from deep_ep.buffers.engram import EngramBuffer

        ranks = job["ranks"]
        torch.cuda.set_device(0)
        # The port below MASTER_PORT is the one that the launcher found free, for DeepInfer.
        port = int(os.environ["MASTER_PORT"]) - DEEPINFER_PORT_SHIFT
        address = f"tcp://{os.environ['MASTER_ADDR']}:{port}"
        dist.init_process_group("nccl", init_method=address, rank=rank, world_size=ranks)
        group = dist.group.WORLD
        shape = ([ROWS], HIDDEN, ranks, 1)
        gpu_bytes, storage_bytes = EngramBuffer.get_storage_size_hint(group, *shape)
        qps, depth, restrict = EngramBuffer.get_theoretical_config(group, 1, ranks, 1)
        self._buffer = EngramBuffer(
            group=group,
            num_gpu_bytes=gpu_bytes,
            num_rdma_storage_bytes=storage_bytes,
            use_cpu_rdma_storage=True,
            num_allocated_qps=qps,
            qp_depth=depth,
            restrict_rd_atomic=restrict,
            allow_hybrid_mode=True,
            explicitly_destroy=True,
        )
        self._buffer.set_config(*shape)
        table = torch.full((ROWS, HIDDEN), float(rank), dtype=torch.bfloat16, device="cuda")
        self._buffer.write([table])
        # Rows are numbered across all ranks: one from each peer.
        wanted = [peer * ROWS + rank for peer in range(ranks)]
        indices = torch.tensor(wanted, dtype=torch.int32, device="cuda").view(1, ranks, 1)
        (wait,) = self._buffer.fetch(indices)
        rows = wait().float().mean(dim=1).tolist()
        if rows != [float(peer) for peer in range(ranks)]:
            msg = f"the probe read wrong rows: {rows}"
            raise RuntimeError(msg)

    def info(self) -> dict[str, Any]:
        return {"engine": "gin-probe", "version": "1", "sampling": {}}

    def run(self, wave: dict[str, Any], prompts: list[Prompt]) -> dict[str, Any]:
        """There are no waves."""
        raise NotImplementedError

    def close(self) -> None:
        self._buffer.destroy()
