"""The commands of the benchmark client, ``vllm bench serve``, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from harness.metrics import LATENCIES, PERCENTILES
from harness.suite.plan import Plan, RequestSet


@dataclass(frozen=True, kw_only=True)
class ClientModel:
    """The served name, which requests carry, and the folder that the tokenizer is read from.

    The name must equal the server's: the client silently skips the comparison of its tokenizer
    with the server's if the server does not know the name (vllm 0.31 benchmarks/serve.py,
    _align_prompts_to_server_tokenizer).
    """

    name: str
    folder: str
    tokenizer_mode: str = "auto"

    @classmethod
    def of(cls, plan: Plan, folder: Path) -> ClientModel:
        """Return the plan's model, stored in ``folder``."""
        model = plan.model
        return cls(name=model.name, folder=str(folder), tokenizer_mode=model.tokenizer_mode)


def dataset_args(model: ClientModel, request_set: RequestSet) -> tuple[str, ...]:
    """Return the arguments that decide the prompts; the export of prompts gets the same."""
    return (
        "--model",
        model.name,
        "--tokenizer",
        model.folder,
        "--tokenizer-mode",
        model.tokenizer_mode,
        "--dataset-name",
        "random",
        "--random-input-len",
        str(request_set.input_len),
        "--random-output-len",
        str(request_set.output_len),
        "--num-prompts",
        str(request_set.prompts),
        "--seed",
        str(request_set.seed),
    )


def wave_args(
    model: ClientModel, request_set: RequestSet, *, base_url: str, result_dir: str, result_name: str
) -> tuple[str, ...]:
    """Return the arguments of one wave.

    The random dataset forces ``ignore_eos`` for this backend; it is given anyway, so that the
    command shows it. No temperature is sent, as in the publication: the server uses the model's.
    """
    return (
        *("--backend", "vllm", "--base-url", base_url, "--endpoint", "/v1/completions"),
        *dataset_args(model, request_set),
        *_sending(request_set),
        "--ignore-eos",
        *("--save-result", "--save-detailed"),
        *("--result-dir", result_dir, "--result-filename", result_name),
        *("--percentile-metrics", ",".join(LATENCIES)),
        *("--metric-percentiles", ",".join(map(str, PERCENTILES))),
        "--disable-tqdm",
    )


def _sending(request_set: RequestSet) -> tuple[str, ...]:
    """Return how requests are sent: a fixed number in flight, or arriving at a rate.

    With a rate nothing bounds what is in flight: a bound would hold requests back, and the time
    that they wait in the client is not part of any latency (vllm 0.31 benchmarks/serve.py).
    """
    if request_set.concurrency is not None:
        return ("--max-concurrency", str(request_set.concurrency), "--request-rate", "inf")
    return ("--request-rate", str(request_set.request_rate))


def bench_argv(
    model: ClientModel, request_set: RequestSet, *, base_url: str, result_dir: str, result_name: str
) -> tuple[str, ...]:
    """Return the whole command of one measured cell."""
    arguments = wave_args(
        model, request_set, base_url=base_url, result_dir=result_dir, result_name=result_name
    )
    return ("vllm", "bench", "serve", *arguments)
