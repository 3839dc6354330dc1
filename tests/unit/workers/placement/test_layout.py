import pytest

from contract.config import RunConfig
from workers.placement.layout import Seat, plan
from workers.placement.weight_transfer import engines_handed_buckets


def _config(num_engines=1, tensor=1, ranks=1, engine="vllm", trainer="megatron", **resources):
    rollout = {"kind": engine, "num_engines": num_engines}
    rollout |= {"tensor_parallel_size": tensor} if engine == "vllm" else {}
    return RunConfig.model_validate(
        {
            "rollout": rollout,
            "trainer": {"kind": trainer, **({"num_processes": ranks} if trainer == "megatron" else {})},
            "drafter": {"kind": "none"},
            "resources": resources,
        }
    )


@pytest.mark.parametrize(("cpus", "claimed"), [(4.0, 0.5), (1.0, 0.3333), (2.0, 0.5)])
def test_on_processors_all_of_them_fit_on_the_smallest_machine(cpus, claimed):
    layout = plan(_config(2, engine="torch", trainer="torch"), cpus)
    assert layout.process_cpus == claimed
    assert layout.strategy == "STRICT_PACK"
    (bundle,) = layout.bundles
    assert bundle == {"CPU": pytest.approx(3 * claimed)}
    assert bundle["CPU"] <= cpus
    assert layout.engines == (Seat(0), Seat(0))


def test_on_several_machines_without_gpus_processes_are_spread():
    layout = plan(_config(3, ranks=2, num_nodes=2), 64.0)
    assert layout.strategy == "SPREAD"
    assert [seat.node for seat in layout.engines] == [0, 0, 1]
    assert [seat.node for seat in layout.trainers] == [0, 1]
    assert [bundle["CPU"] for bundle in layout.bundles] == [1.5, 1.0]


def test_colocated_engines_use_the_gpus_of_ranks_and_claim_none():
    config = _config(2, tensor=2, ranks=4, num_nodes=2, gpus_per_node=2)
    layout = plan(config, 64.0)
    assert layout.strategy == "STRICT_SPREAD"
    assert layout.bundles == ({"CPU": 1.5, "GPU": 2.0}, {"CPU": 1.5, "GPU": 2.0})
    assert layout.trainers == (Seat(0, 1.0), Seat(0, 1.0), Seat(1, 1.0), Seat(1, 1.0))
    assert layout.engines == (Seat(0, shares_gpus_of=(0, 1)), Seat(1, shares_gpus_of=(2, 3)))
    assert engines_handed_buckets(config, layout) == [0]


def test_separate_engines_have_gpus_of_their_own():
    config = _config(4, tensor=2, ranks=4, num_nodes=3, gpus_per_node=4, placement="separate", num_generation_nodes=2)
    layout = plan(config, 64.0)
    assert layout.engines == (Seat(0, 2.0), Seat(0, 2.0), Seat(1, 2.0), Seat(1, 2.0))
    assert {seat.node for seat in layout.trainers} == {2}
    assert engines_handed_buckets(config, layout) == []


@pytest.mark.parametrize(
    ("num_nodes", "gpus_per_node", "num_engines", "beside", "claims"),
    [
        (1, 4, 2, [0], [1.0]),
        (1, 1, 2, [0, 1], []),
        (2, 2, 6, [0, 4], [0.5, 1.0, 1.0, 0.5]),
        (1, 2, 5, [0, 2, 4], [0.5, 0.5]),
    ],
)
def test_engines_beside_one_rank_take_the_other_gpus_too(num_nodes, gpus_per_node, num_engines, beside, claims):
    config = _config(num_engines, engine="torch", trainer="torch", num_nodes=num_nodes, gpus_per_node=gpus_per_node)
    layout = plan(config, 64.0)
    assert layout.trainers == (Seat(0, 1.0),)
    assert [index for index, seat in enumerate(layout.engines) if seat.shares_gpus_of == (0,)] == beside
    assert [seat.num_gpus for seat in layout.engines if not seat.shares_gpus_of] == claims
    for node in range(num_nodes):
        claimed = sum(seat.num_gpus for seat in (*layout.engines, *layout.trainers) if seat.node == node)
        assert claimed <= gpus_per_node
    assert engines_handed_buckets(config, layout) == beside


def test_a_slot_that_is_partly_a_rank_s_is_left_free():
    layout = plan(_config(1, tensor=2, trainer="torch", gpus_per_node=4), 64.0)
    assert layout.engines == (Seat(0, 2.0),)
