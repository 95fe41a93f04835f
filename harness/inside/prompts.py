"""Make the prompts with vLLM's own random dataset, from the arguments that the client gets.

The client builds text of L minus the tokenizer's special tokens, and the server adds them again
(vllm 0.31 benchmarks/datasets: RandomDataset.sample). So ids are saved with special tokens added:
they are what a server computes, and what another engine must be given.

Job: ``{"model": folder, "sets": [{"client_args": [...], "ids": path, "manifest": path}]}``.
"""

from __future__ import annotations

import hashlib
import json
import random
from pathlib import Path

import numpy as np
import vllm
from vllm.benchmarks.datasets import get_samples
from vllm.benchmarks.serve import add_cli_args
from vllm.tokenizers import TokenizerLike, get_tokenizer
from vllm.utils.argparse_utils import FlexibleArgumentParser

from harness.inside.jobs import read_job, write_atomic

SAMPLES = 2
"""How many prompts keep their text, for a comparison with the server's /tokenize."""


def export(client_args: list[str], tokenizer: TokenizerLike) -> tuple[list[str], list[list[int]]]:
    """Return texts and token ids of the prompts that the client will send."""
    parser = FlexibleArgumentParser()
    add_cli_args(parser)
    args = parser.parse_args(client_args)
    # As main_async does before it samples.
    random.seed(args.seed)
    np.random.seed(args.seed)
    texts = [request.prompt for request in get_samples(args, tokenizer)]
    return texts, [list(tokenizer.encode(text)) for text in texts]


def reserved_ids(model: Path, tokenizer: TokenizerLike) -> set[int]:
    """Return ids that are not text: the tokenizer's special ones, and the model's image token."""
    config = json.loads((model / "config.json").read_text(encoding="utf-8"))
    images = {value for name, value in config.items() if name.endswith("image_token_id")}
    return {*tokenizer.all_special_ids, *images}


def main() -> None:
    """Write every set of the job, ids first, manifest last."""
    job = read_job()
    tokenizer = get_tokenizer(job["model"], tokenizer_mode=job["tokenizer_mode"])
    reserved = reserved_ids(Path(job["model"]), tokenizer)
    # What the tokenizer adds to any text is part of every prompt.
    added = sum(token in reserved for token in tokenizer.encode(""))
    for wanted in job["sets"]:
        texts, ids = export(wanted["client_args"], tokenizer)
        lines = "".join(json.dumps({"prompt_token_ids": each}) + "\n" for each in ids)
        write_atomic(Path(wanted["ids"]), lines)
        picked = sorted({0, len(texts) - 1})[:SAMPLES]
        manifest = {
            "made_by": f"vllm {vllm.__version__} random dataset",
            "client_args": wanted["client_args"],
            "special_token_ids": sorted(tokenizer.all_special_ids),
            "count": len(ids),
            "lengths": [len(each) for each in ids],
            "with_reserved_ids": sum(
                sum(token in reserved for token in each) > added for each in ids
            ),
            "sha256": hashlib.sha256(lines.encode()).hexdigest(),
            "samples": [{"index": index, "text": texts[index]} for index in picked],
        }
        write_atomic(Path(wanted["manifest"]), json.dumps(manifest, indent=1) + "\n")
        print(f"prompts: {len(ids)} of {sorted({len(each) for each in ids})} tokens", flush=True)


if __name__ == "__main__":
    main()
