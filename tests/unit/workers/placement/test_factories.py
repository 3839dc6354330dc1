"""What is made by kind; tests/unit/workers/rollout/vllm and train/megatron have the others."""

import pytest

from contract.config import RunConfig
from workers.data.tokenizer import character_tokenizer
from workers.model.hf_checkpoint import save_policy
from workers.model.qwen3 import Qwen3Policy
from workers.placement.factories import Rank, build_engine, build_trainer, num_trainer_processes
from workers.rollout.engine import SamplingParams
from workers.train.warm_up import model_config

SHAPE = {
    "kind": "scratch",
    "num_layers": 3,
    "hidden_size": 32,
    "intermediate_size": 32,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    config = RunConfig.model_validate({"policy": SHAPE, "drafter": {"kind": "none"}})
    policy = Qwen3Policy(model_config(config.policy, character_tokenizer()))
    policy.initialize(1)
    folder = tmp_path_factory.mktemp("policy")
    save_policy(policy, folder)
    character_tokenizer().save(folder)
    return folder


@pytest.mark.parametrize("drafter", ["none", "ngram"])
def test_an_engine_and_a_trainer_of_pytorch_exchange_weights(folder, drafter):
    config = RunConfig.model_validate(
        {"policy": SHAPE, "drafter": {"kind": drafter}, "rollout": {"precision": "float32"}}
    )
    engine = build_engine(config, folder, None)
    trainer = build_trainer(config, folder, None, Rank(0, 1, "127.0.0.1", 0))
    greedy = SamplingParams(0.0, 8, 0)
    before = engine.generate([[3, 4, 5]], 1, greedy).completions[0].token_ids
    engine.update_weights("policy", trainer.export_weights("policy"))
    assert engine.generate([[3, 4, 5]], 1, greedy).completions[0].token_ids == before
    engine.close()
    with pytest.raises(RuntimeError, match="no weights yet"):
        engine.generate([[3, 4, 5]], 1, greedy)


def test_ranks_by_kind():
    assert num_trainer_processes(RunConfig()) == 1
    megatron = {"kind": "megatron", "num_processes": 4}
    assert num_trainer_processes(RunConfig.model_validate({"trainer": megatron})) == 4
