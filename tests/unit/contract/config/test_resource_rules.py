import pytest
from pydantic import ValidationError

from contract.config import RunConfig

ON_GPUS = {
    "rollout": {"kind": "vllm", "num_engines": 4, "tensor_parallel_size": 2},
    "trainer": {"kind": "megatron", "num_processes": 8},
    "resources": {"num_nodes": 2, "gpus_per_node": 4},
}


def _changed(**changes):
    return {part: ON_GPUS[part] | changes.get(part, {}) for part in ON_GPUS}


def test_engines_and_trainer_that_fill_the_gpus_are_accepted():
    RunConfig.model_validate(ON_GPUS)
    separate = {"num_nodes": 3, "placement": "separate", "num_generation_nodes": 1}
    RunConfig.model_validate(_changed(rollout={"num_engines": 2}, resources=separate))


def test_without_gpus_there_may_be_as_many_processes_as_one_likes():
    RunConfig.model_validate(_changed(rollout={"num_engines": 9}, resources={"gpus_per_node": 0}))


def test_more_engines_of_pytorch_than_gpus_share_them():
    RunConfig.model_validate({"rollout": {"num_engines": 5}, "resources": {"gpus_per_node": 2}})


@pytest.mark.parametrize(
    ("changes", "location", "mend"),
    [
        ({"rollout": {"tensor_parallel_size": 3, "num_engines": 1}}, "rollout.tensor_parallel_size", "must divide"),
        ({"rollout": {"num_engines": 5}}, "rollout.num_engines", "must be at most 4: engines of"),
        (
            {"trainer": {"num_processes": 4}},
            "rollout.num_engines",
            "must be at most 2: colocated, engines of tensor_parallel_size = 2 run on the GPUs of the trainer's",
        ),
        ({"trainer": {"num_processes": 16}}, "trainer.num_processes", "must be at most 8, one GPU"),
        (
            {"resources": {"num_nodes": 3, "placement": "separate", "num_generation_nodes": 1}},
            "rollout.num_engines",
            "must be at most 2: engines of tensor_parallel_size = 2 have 4 GPUs",
        ),
        (
            {"resources": {"placement": "separate", "num_generation_nodes": 1}, "rollout": {"num_engines": 2}},
            "trainer.num_processes",
            "must be at most 4",
        ),
    ],
)
def test_what_finds_no_place_is_told_with_its_mend(changes, location, mend):
    with pytest.raises(ValidationError) as error:
        RunConfig.model_validate(_changed(**changes))
    told = {".".join(map(str, detail["loc"])): detail["msg"] for detail in error.value.errors()}
    assert list(told) == [location]
    assert mend in told[location]
