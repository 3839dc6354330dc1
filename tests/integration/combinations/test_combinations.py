"""Whole runs through the real control plane with the cluster's libraries: vLLM generates, Megatron-core trains.

A small policy that can do most of its sums after the warm-up; every step is held to what makes a run worth its GPUs.
"""

import pytest

VLLM = ["rollout.kind=vllm"]
NGRAM = ["drafter.kind=ngram"]
MEGATRON = ["trainer.kind=megatron", "trainer.num_processes=2", "trainer.tensor_parallel_size=2"]
EAGLE = ["drafter.pretraining.num_steps=30", "drafter.pretraining.num_rollouts=64"]
SETTINGS = [
    *("policy.num_key_value_heads=2", "policy.warm_up.num_steps=150", "policy.warm_up.batch_size=32"),
    *("weight_sync.verify_checksum=true", "checkpoint.interval_steps=3", "probe.interval_steps=3"),
]
NUM_STEPS = 3
OF_EVERY_STEP = {
    "reward/train_mean": lambda reward: reward > 0.3,
    "rollout/acceptance_length_tokens": lambda length: 1.1 < length <= 4,
    "lossless/num_count_violations": lambda number: number == 0,
    "lossless/log10_e_value": lambda evidence: evidence < 2,
    "mismatch/token_mult_prob_error_ratio": lambda ratio: 1 <= ratio < 1.05,
    "policy/grad_norm": lambda norm: norm > 0,
    "weight_sync/size_bytes": lambda size: size > 100_000,
    "throughput/generation_tokens_per_device_second": lambda speed: speed > 0,
    "hardware/node_0_cpu_fraction": lambda share: 0 <= share <= 1,
}
OF_A_TRAINED_DRAFT = {"draft/loss_nats": lambda loss: loss > 0}


COMBINATIONS = {
    "torch-megatron": EAGLE + MEGATRON,
    "vllm-torch": [*EAGLE, *VLLM, "rollout.enforce_eager=true"],  # the other one compiles
    "vllm-megatron": VLLM + MEGATRON + NGRAM,
}


@pytest.mark.parametrize("name", COMBINATIONS)
def test_engines_and_trainers_combine(installation, name):
    settings = [argument for setting in SETTINGS + COMBINATIONS[name] for argument in ("--set", setting)]
    run_id = installation.launch(name, NUM_STEPS, *settings)
    run = installation.run_when(run_id, lambda run: run["is_ended"], timeout_s=280)
    assert (run["status"], run["current_attempt"]) == ("succeeded", 1), run["status_reason"]
    expected = OF_EVERY_STEP | ({} if run["config"]["drafter"]["kind"] == "ngram" else OF_A_TRAINED_DRAFT)
    with installation.api() as client:
        asked = {"names": ",".join(expected)}
        answer = client.get(f"/runs/{run_id}/series/data", params=asked).raise_for_status().json()
        alarms = client.get(f"/runs/{run_id}/alarms").raise_for_status().json()
    # Whether so small a model gains by speculation is not the question here.
    assert {alarm["name"] for alarm in alarms["items"]} <= {"no_speedup"}
    series = {one["name"]: one for one in answer["series"]}
    assert series.keys() == expected.keys()
    for metric, holds in expected.items():
        assert series[metric]["step"] == [1, 2, 3], metric
        assert all(map(holds, series[metric]["value"])), (metric, series[metric]["value"])
