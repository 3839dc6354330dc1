"""The run configuration: closed, complete in its messages, and equal digests for equal meaning."""

import json
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from contract.config import RunConfig
from contract.config.base import ConfigModel

DATASET: dict[str, Any] = {"kind": "dataset", "train": {"kind": "jsonl", "path": "/data/a.jsonl"}}
ON_DATASET: dict[str, Any] = {"policy": {"kind": "checkpoint", "path": "/models/a"}, "task": DATASET}


def _errors(config: object) -> dict[str, str]:
    """Message by dotted field of what validation refuses."""
    with pytest.raises(ValidationError) as refused:
        RunConfig.model_validate(config)
    return {".".join(str(part) for part in error["loc"]): error["msg"] for error in refused.value.errors()}


def test_defaults_are_valid_and_survive_json() -> None:
    config = RunConfig()
    assert RunConfig.model_validate_json(config.model_dump_json()) == config


def test_a_misspelt_key_is_refused_at_its_place() -> None:
    assert list(_errors({"grpo": {"num_step": 3}})) == ["grpo.num_step"]


@pytest.mark.parametrize(
    ("given", "mend"),
    [
        ({"sead": 1}, "did you mean seed?"),
        ({"grpo": {"num_step": 3}}, "did you mean num_steps?"),
        ({"grpo": {"num_step": 3, "kl_penalty": "x"}, "drafter": {"kind": "magic"}}, "did you mean num_steps?"),
        ({"policy": {"kind": "scratch", "warm_up": {"batchsize": 3}}}, "did you mean batch_size?"),
        ({"grpo": {"nonsense": 3}}, "Extra inputs are not permitted"),
    ],
)
def test_an_unknown_key_is_told_the_key_that_it_resembles(given: dict[str, object], mend: str) -> None:
    assert mend in " ".join(_errors(given).values())


@pytest.mark.parametrize(
    ("model", "part", "sizes", "field", "mend"),
    [
        (
            "Qwen3-8B",
            "trainer",
            {"num_processes": 8, "pipeline_parallel_size": 8},
            "pipeline_parallel_size",
            "36 layers",
        ),
        ("Qwen3-8B", "trainer", {"num_processes": 2, "expert_parallel_size": 2}, "expert_parallel_size", "no experts"),
        (
            "Qwen3-235B-A22B",
            "trainer",
            {"num_processes": 8, "tensor_parallel_size": 8},
            "tensor_parallel_size",
            "4 key",
        ),
        ("Qwen3-8B", "rollout", {"tensor_parallel_size": 3}, "tensor_parallel_size", "32 query heads"),
    ],
)
def test_parallel_sizes_divide_those_of_a_named_model(
    model: str, part: str, sizes: dict[str, int], field: str, mend: str
) -> None:
    policy = {"kind": "checkpoint", "path": "/m", "model": model}
    kind = "megatron" if part == "trainer" else "vllm"
    errors = _errors({"policy": policy, part: {"kind": kind, **sizes}, "drafter": {"kind": "none"}})
    assert list(errors) == [f"{part}.{field}"]
    assert mend in errors[f"{part}.{field}"]


def test_a_part_without_its_kind_is_of_the_default_kind() -> None:
    config = RunConfig.model_validate({"rollout": {"num_engines": 2}, "drafter": {"draft_length": 3}})
    assert (config.rollout.kind, config.drafter.kind) == ("torch", "eagle3")


def test_a_wrong_kind_names_the_kinds_there_are() -> None:
    errors = _errors({"drafter": {"kind": "eagle9"}})
    assert "'eagle3'" in errors["drafter"]
    assert "'none'" in errors["drafter"]


@pytest.mark.parametrize(
    ("given", "field", "mend"),
    [
        ({"policy": {"kind": "scratch", "hidden_size": 250}}, "policy.hidden_size", "multiple of 8"),
        ({"policy": {"kind": "scratch", "num_key_value_heads": 3}}, "policy.num_key_value_heads", "divide"),
        ({"policy": {"kind": "scratch", "num_layers": 2}}, "policy.num_layers", "drafter none"),
        ({"rollout": {"temperature": 0}}, "rollout.temperature", "above 0"),
        ({"rollout": {"max_new_tokens": 127}}, "rollout.max_new_tokens", "at least 128"),
        ({"task": {"num_terms": 5}}, "rollout.max_new_tokens", "at least 172"),
        ({"rollout": {"max_new_tokens": 2037}}, "rollout.max_new_tokens", "at most 2,036"),
        ({"samples": {"num_samples": 33}, "grpo": {"num_prompts_per_step": 4}}, "samples.num_samples", "32"),
        ({"rollout": {"num_engines": 17}}, "rollout.num_engines", "16"),
        (
            {
                "trainer": {
                    "kind": "megatron",
                    "num_processes": 6,
                    "tensor_parallel_size": 2,
                    "pipeline_parallel_size": 2,
                }
            },
            "trainer.num_processes",
            "= 4",
        ),
        (
            {"trainer": {"kind": "megatron", "num_processes": 8, "tensor_parallel_size": 8}},
            "trainer.tensor_parallel_size",
            "num_key_value_heads = 2",
        ),
        (
            {"trainer": {"kind": "megatron", "num_processes": 4, "pipeline_parallel_size": 4}},
            "trainer.pipeline_parallel_size",
            "num_layers = 6",
        ),
        (
            {"trainer": {"kind": "megatron", "num_processes": 2, "expert_parallel_size": 2}},
            "trainer.expert_parallel_size",
            "has no experts",
        ),
        (
            {"trainer": {"kind": "megatron", "optimizer": {"kind": "muon"}}},
            "trainer.distributed_optimizer",
            "must be false with optimizer muon",
        ),
        (
            {
                "policy": {"kind": "checkpoint", "path": "/mixture"},
                "trainer": {
                    "kind": "megatron",
                    "num_processes": 4,
                    "pipeline_parallel_size": 2,
                    "expert_parallel_size": 4,
                },
            },
            "trainer.expert_parallel_size",
            "num_processes / pipeline_parallel_size = 2",
        ),
        ({"task": DATASET}, "policy.kind", "must be checkpoint with task dataset"),
        (ON_DATASET | {"drafter": {"pretraining": {"prompts": "generic"}}}, "drafter.pretraining.prompts", "be task"),
        (
            {**ON_DATASET, "task": {**DATASET, "thinking": "enabled", "chat_template": "plain"}},
            "task.thinking",
            "plain",
        ),
        (
            {**ON_DATASET, "task": {**DATASET, "train": DATASET["train"] | {"prompt_template": "x"}}},
            "task.train.prompt_template",
            "must contain {prompt}",
        ),
        (
            {**ON_DATASET, "task": {**DATASET, "validation": DATASET["train"] | {"prompt_template": ""}}},
            "task.validation.prompt_template",
            "must contain {prompt}",
        ),
        (
            {**ON_DATASET, "task": {**DATASET, "overlong": {"kind": "penalised", "buffer_tokens": 128}}},
            "task.overlong.buffer_tokens",
            "less than rollout.max_new_tokens = 128",
        ),
        ({"resources": {"num_generation_nodes": 1}}, "resources.num_generation_nodes", "must be 0"),
        ({"resources": {"placement": "separate"}}, "resources.num_generation_nodes", "at least 2"),
        (
            {"resources": {"placement": "separate", "num_nodes": 3, "num_generation_nodes": 3}},
            "resources.num_generation_nodes",
            "num_nodes - 1 = 2",
        ),
    ],
)
def test_each_rule_across_fields_names_its_field_and_the_mend(given: dict[str, object], field: str, mend: str) -> None:
    errors = _errors(given)
    assert list(errors) == [field]
    assert mend in errors[field]


@pytest.mark.parametrize(
    "audit",
    [
        {"max_tokens_per_step": 0},
        {"max_evidence_tokens_per_step": -1},
        {"false_alarm_rate": 0},
        {"min_distance": 1},
        {"max_mismatch_ratio": 1},
        {"max_mismatch_growth_ratio": 0.5},
        {"max_acceptance_fall_fraction": 0},
    ],
)
def test_limits_of_the_audit_that_mean_nothing_are_refused(audit: dict[str, float]) -> None:
    assert list(_errors({"audit": audit})) == [f"audit.{next(iter(audit))}"]


def test_all_broken_rules_are_reported_at_once() -> None:
    errors = _errors({"rollout": {"temperature": 0}, "policy": {"kind": "scratch", "num_key_value_heads": 3}})
    assert set(errors) == {"rollout.temperature", "policy.num_key_value_heads"}


def test_broken_fields_and_broken_rules_are_reported_at_once() -> None:
    assert set(_errors({"seed": -1, "rollout": {"temperature": 0}})) == {"seed", "rollout.temperature"}
    given = {
        "grpo": {"num_steps": "x", "num_prompts_per_step": 4},
        "rollout": {"num_engines": 5},
        "drafter": {"kind": 1},
    }
    assert set(_errors(given)) == {"grpo.num_steps", "rollout.num_engines", "drafter"}


@pytest.mark.parametrize(
    ("given", "fields"),
    [
        ({"grpo": {"num_prompts_per_step": 0}, "rollout": {"num_engines": 17}}, {"grpo.num_prompts_per_step"}),
        ({"grpo": {"num_prompts_per_stp": 64}, "rollout": {"num_engines": 17}}, {"grpo.num_prompts_per_stp"}),
        ({"grop": {"num_prompts_per_step": 64}, "rollout": {"num_engines": 17}}, {"grop"}),
        ({"grpo": 64, "rollout": {"num_engines": 17}}, {"grpo"}),
        ({"drafter": {"kind": "magic"}, "policy": {"kind": "scratch", "num_layers": 2}}, {"drafter"}),
        (
            {"policy": {"kind": "checkpoint", "hidden_size": 1}, "seed": "x"},
            {"policy.checkpoint.path", "policy.checkpoint.hidden_size", "seed"},
        ),
        ({"policy": {"kind": "checkpoint", "path": 5}}, {"policy.checkpoint.path"}),
    ],
)
def test_a_rule_says_nothing_about_the_default_of_a_broken_field(given: dict[str, object], fields: set[str]) -> None:
    assert set(_errors(given)) == fields


@pytest.mark.parametrize("given", [None, 5, [], "text"])
def test_what_is_no_object_is_told_once(given: object) -> None:
    assert list(_errors(given)) == [""]


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"grpo": {"num_steps": 10**12}}, "grpo.num_steps"),
        ({"grpo": {"num_generations_per_prompt": 10**12}}, "grpo.num_generations_per_prompt"),
        ({"policy": {"kind": "checkpoint", "path": "a\x00"}}, "policy.checkpoint.path"),
        ({"policy": {"kind": "checkpoint", "path": "a\n"}}, "policy.checkpoint.path"),
        ({"drafter": {"kind": "eagle3", "path": "\x1b[31m"}}, "drafter.eagle3.path"),
    ],
)
def test_what_no_database_can_store_is_refused_at_its_field(given: dict[str, object], field: str) -> None:
    assert list(_errors(given)) == [field]


def test_every_integer_and_every_text_has_a_bound() -> None:
    def unbounded(node: object, path: str) -> list[str]:
        if isinstance(node, list):
            return [found for item in node for found in unbounded(item, path)]
        if not isinstance(node, dict):
            return []
        bounds = {"integer": ("maximum", "exclusiveMaximum", "const"), "string": ("maxLength", "enum", "const")}
        is_open = node.get("type") in bounds and not any(key in node for key in bounds[node["type"]])
        below = [found for key, value in node.items() for found in unbounded(value, f"{path}/{key}")]
        return ([path] if is_open else []) + below

    assert unbounded(RunConfig.model_json_schema(), "") == []


def test_the_tokens_of_another_policy_are_not_counted() -> None:
    given = {"policy": {"kind": "checkpoint", "path": "/models/x"}, "rollout": {"max_new_tokens": 30}}
    RunConfig.model_validate(given)


def test_a_dataset_needs_no_more_than_its_place() -> None:
    task = RunConfig.model_validate(ON_DATASET).task
    assert (task.kind, task.validation.kind, task.reward.kind, task.overlong.kind) == (
        "dataset",
        "held_out",
        "math",
        "zero",
    )
    assert RunConfig.model_validate({"task": {"num_terms": 2}}).task.kind == "arithmetic"


@pytest.mark.parametrize(
    ("task", "field"),
    [
        ({"train": {"path": "/a.jsonl"}}, "task.dataset.train"),
        ({"train": {"kind": "jsonl"}}, "task.dataset.train.jsonl.path"),
        ({}, "task.dataset.train"),
        ({**DATASET, "reward": {"kind": "python", "function": "os.system"}}, "task.dataset.reward.python.function"),
        ({**DATASET, "reward": {"kind": "math", "timeout_s": 0}}, "task.dataset.reward.math.timeout_s"),
    ],
)
def test_what_a_dataset_lacks_is_told_at_its_field(task: dict[str, Any], field: str) -> None:
    assert list(_errors({**ON_DATASET, "task": {"kind": "dataset", **task}})) == [field]


def test_two_layers_are_enough_without_a_draft_head() -> None:
    RunConfig.model_validate({"policy": {"kind": "scratch", "num_layers": 2}, "drafter": {"kind": "none"}})


def test_non_finite_numbers_are_refused() -> None:
    assert "rollout.torch.temperature" in _errors({"rollout": {"temperature": float("nan")}})


def test_digest_ignores_what_was_left_to_defaults_and_sees_every_change() -> None:
    explicit = RunConfig.model_validate({"grpo": {"num_steps": RunConfig().grpo.num_steps}})
    assert explicit.sha256() == RunConfig().sha256()
    assert RunConfig(seed=43).sha256() != RunConfig().sha256()


def test_every_field_has_a_description_for_the_form() -> None:
    schema = RunConfig.model_json_schema()
    undocumented = [
        f"{model}.{field}"
        for model, definition in {**schema["$defs"], "RunConfig": schema}.items()
        for field, spec in definition["properties"].items()
        if field != "kind" and "description" not in spec
    ]
    assert undocumented == []


def test_every_part_is_closed_and_immutable() -> None:
    parts: list[type[BaseModel]] = ConfigModel.__subclasses__()
    assert len(parts) > 10
    assert all(part.model_config["extra"] == "forbid" and part.model_config["frozen"] for part in parts)


def test_schema_is_plain_json() -> None:
    assert json.loads(json.dumps(RunConfig.model_json_schema()))["title"] == "RunConfig"


@pytest.mark.parametrize("value", [True, "20", 20.0, "2e1", [20], None])
def test_a_number_of_another_type_is_refused(value: object) -> None:
    with pytest.raises(ValidationError) as caught:
        RunConfig.model_validate({"grpo": {"num_steps": value}})
    assert [error["loc"][-1] for error in caught.value.errors()] == ["num_steps"]


@pytest.mark.parametrize("value", [1, 0, "yes", "true"])
def test_a_truth_value_of_another_type_is_refused(value: object) -> None:
    with pytest.raises(ValidationError):
        RunConfig.model_validate({"grpo": {"normalize_advantages": value}})
