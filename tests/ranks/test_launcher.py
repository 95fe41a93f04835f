"""The driver's numbers against what the double really did."""

from __future__ import annotations

from typing import Any

import pytest

from harness.results.measurement import read_batch
from tests.ranks.launched import Launched


def steps_of_the_cell(truth: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    """Return the steps that gave tokens to the cell's requests."""
    return [step for step in truth if any(each.startswith(name) for each in step["tokens"])]


def test_every_token_is_stamped_between_its_step_and_the_next(launched: Launched) -> None:
    code, output = launched.run()
    assert code == 0, output
    result, truth = launched.result(), launched.truth()
    for request in result["requests"]:
        name = f"cell#{request['index']}"
        steps = [step for step in truth[request["rank"]] if name in step["tokens"]]
        measured = request["last_token_s"] - request["first_token_s"]
        span = steps[-1]["returned"] - steps[0]["returned"]
        # Each stamp lies between its step's return and the caller's next call.
        first, last = (step["next_call"] - step["returned"] for step in (steps[0], steps[-1]))
        assert span - first <= measured <= span + last
        assert request["start_s"] < request["first_token_s"]


def test_counts_are_the_doubles(launched: Launched) -> None:
    code, output = launched.run()
    assert code == 0, output
    result, truth = launched.result(), launched.truth()
    steps = [step for rank in truth for step in steps_of_the_cell(rank, "cell#")]
    assert sum(sum(step["tokens"].values()) for step in steps) == 8 * 12
    assert [each["output_tokens"] for each in result["requests"]] == [12] * 8
    assert [each["prompt_tokens"] for each in result["requests"]] == [64] * 8
    assert sum(each["drafted"] for each in result["requests"]) == sum(s["drafted"] for s in steps)
    assert sum(each["accepted"] for each in result["requests"]) == sum(s["accepted"] for s in steps)
    assert result["ids_sha256"] == launched.sha256()
    assert result["sampling"] == {"temperature": 0.6, "top_p": 0.95, "top_k": -1}
    assert result["engine"] == "deepinfer"
    measured = read_batch(launched.folder / "cell" / "result.json")
    drafted = sum(step["drafted"] for step in steps)
    assert measured.metric("acceptance_percent") == pytest.approx(
        100 * sum(step["accepted"] for step in steps) / drafted
    )
    assert measured.acceptance_length is not None
    assert 1 <= measured.acceptance_length <= 6


def test_prompts_are_shared_out_one_by_one(launched: Launched) -> None:
    launched.ranks, launched.prompts = 3, 8
    code, output = launched.run()
    assert code == 0, output
    requests = launched.result()["requests"]
    assert [each["index"] for each in requests] == list(range(8))
    assert [each["rank"] for each in requests] == [0, 1, 2, 0, 1, 2, 0, 1]
    assert [each["requests"] for each in launched.result()["ranks"]] == [3, 3, 2]


def test_a_rank_without_prompts_steps_along(launched: Launched) -> None:
    launched.ranks, launched.prompts = 2, 1
    code, output = launched.run()
    assert code == 0, output
    # Prefill needs every rank to want it, which an idle one never does, or the hundredth step.
    assert [step["kind"] for step in launched.truth()[0]].index("prefill") == 100
    assert [each["requests"] for each in launched.result()["ranks"]] == [1, 0]


@pytest.mark.parametrize(("drive", "lost"), [("generate", 70), ("step", 0)])
def test_generate_loses_steps_before_its_first_prefill(
    launched: Launched, drive: str, lost: int
) -> None:
    """The number by which the two drive modes differ: empty decode steps until prefill."""
    launched.drive = drive
    code, output = launched.run()
    assert code == 0, output
    for rank in launched.truth():
        kinds = [step["kind"] for step in rank]
        assert kinds.index("prefill") == lost
        assert kinds[:lost] == ["empty"] * lost


def test_generate_measures_throughput_and_no_token_times(launched: Launched) -> None:
    launched.drive = "generate"
    code, output = launched.run()
    assert code == 0, output
    measured = read_batch(launched.folder / "cell" / "result.json")
    assert measured.metric("mean_ttft_ms") is None
    assert measured.metric("mean_tpot_ms") is None
    assert measured.output_lens == (12,) * 8
    assert measured.metric("output_throughput") == pytest.approx(96 / measured.duration_s)
    assert measured.metric("acceptance_percent") is not None


def test_long_prompts_are_prefilled_in_batches(launched: Launched) -> None:
    launched.input_len, launched.engine = 3000, {"max_model_len": 4096}
    code, output = launched.run()
    assert code == 0, output
    prefills = [step for step in launched.truth()[0] if step["kind"] == "prefill"]
    assert all(len(step["tokens"]) == 1 for step in prefills)
    assert len(prefills) == 2 * 4


def test_one_output_token(launched: Launched) -> None:
    launched.output_len = 1
    code, output = launched.run()
    assert code == 0, output
    assert read_batch(launched.folder / "cell" / "result.json").metric("mean_tpot_ms") is None


def test_events_tell_how_far_it_is(launched: Launched) -> None:
    launched.run()
    names = [(each["event"], each.get("wave")) for each in launched.events()]
    assert names == [
        ("starting", None),
        ("ready", None),
        ("wave-started", "warmup"),
        ("wave-finished", "warmup"),
        ("wave-started", "cell"),
        ("wave-finished", "cell"),
        ("finished", None),
    ]
    ready = launched.events()[1]
    assert ready["ranks"] == 2
    assert ready["max_num_seqs"] == 256
    assert ready["kv_cache_tokens"] == 128000


def test_outputs_beyond_the_pools_cap_are_refused_by_the_engine(launched: Launched) -> None:
    launched.ranks, launched.prompts, launched.output_len = 1, 1700, 12
    launched.engine = {"max_num_seqs": 1700, "max_num_batched_tokens": 1 << 20}
    code, output = launched.run()
    assert code == 1
    assert "RequestOutputPool: more than 10000 outputs are alive" in output
