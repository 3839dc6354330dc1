"""Rules of machines and GPUs: engines and trainer must find a place on those that the run takes."""

from contract.config.rule import Rule


def _engine_gpus(gpus_per_node: int, placement: str, num_nodes: int, num_generation_nodes: int) -> int:
    return gpus_per_node * (num_nodes if placement == "colocated" else num_generation_nodes)


def _trainer_gpus(gpus_per_node: int, num_nodes: int, num_generation_nodes: int) -> int:
    return gpus_per_node * (num_nodes - num_generation_nodes)


_NODES = ("resources.gpus_per_node", "resources.placement", "resources.num_nodes", "resources.num_generation_nodes")

RESOURCE_RULES: tuple[Rule, ...] = (
    Rule(
        "resources.num_generation_nodes",
        ("resources.placement", "resources.num_nodes"),
        lambda engines, placement, nodes: 0 < engines < nodes if placement == "separate" else engines == 0,
        lambda placement, nodes: (
            "must be 0 with placement colocated, where engines and trainer share all nodes"
            if placement == "colocated"
            else f"must be between 1 and num_nodes - 1 = {nodes - 1} with placement separate"
            if nodes > 1
            else "must leave a node to the trainer: placement separate needs num_nodes of at least 2"
        ),
    ),
    Rule(
        "rollout.tensor_parallel_size",
        ("resources.gpus_per_node",),
        lambda size, gpus: gpus == 0 or gpus % size == 0,
        lambda gpus: f"must divide resources.gpus_per_node = {gpus}, for an engine is on one node",
    ),
    Rule(
        "rollout.num_engines",
        ("rollout.tensor_parallel_size", *_NODES),
        lambda engines, size, *nodes: nodes[0] == 0 or engines * size <= _engine_gpus(*nodes),
        lambda size, *nodes: (
            f"must be at most {_engine_gpus(*nodes) // size}: engines of tensor_parallel_size = {size} have "
            f"{_engine_gpus(*nodes)} GPUs by resources"
        ),
    ),
    Rule(
        "rollout.num_engines",
        ("rollout.tensor_parallel_size", "trainer.num_processes", *_NODES),
        lambda engines, size, ranks, gpus, placement, *nodes: (
            gpus == 0
            or placement == "separate"
            or engines * size <= ranks
            or engines * size > _engine_gpus(gpus, placement, *nodes)  # which the rule above tells
        ),
        lambda size, ranks, *_: (
            f"must be at most {ranks // size}: colocated, engines of tensor_parallel_size = {size} run on the GPUs of "
            f"the trainer's num_processes = {ranks}"
        ),
    ),
    Rule(
        "trainer.num_processes",
        ("resources.gpus_per_node", "resources.num_nodes", "resources.num_generation_nodes"),
        lambda ranks, *nodes: nodes[0] == 0 or ranks <= _trainer_gpus(*nodes),
        lambda *nodes: f"must be at most {_trainer_gpus(*nodes)}, one GPU of resources each",
    ),
)
