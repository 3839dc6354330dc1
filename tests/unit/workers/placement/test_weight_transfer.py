"""Who is called in which order, and what verification finds, with the actors in this process.

Actors in processes of their own, and broadcasts between them, are in tests/integration/workers.
"""

from dataclasses import replace

import pytest
import torch

from contract.config import RunConfig
from workers.placement.engines import RemoteEngines, RolloutActor
from workers.placement.layout import plan
from workers.placement.trainers import RemoteTrainer, TrainerActor
from workers.placement.weight_transfer import WeightTransfer
from workers.train.channels.checksum import WeightMismatchError

POLICY = {f"layer.{index}.weight": torch.randn(64, 1024) for index in range(8)}  # 2 MiB
DRAFT = {"fc.weight": torch.randn(4, 4)}


class _Source:
    def export_weights(self, part):
        yield from (POLICY if part == "policy" else DRAFT).items()


class _Target:
    def __init__(self):
        self.weights = {}

    def update_weights(self, part, weights):
        self.weights[part] = {name: tensor.clone() for name, tensor in weights}


class _Actor:
    """Calls are done at once; tamper changes the buckets on their way in."""

    def __init__(self, actor, tamper=lambda bucket: bucket):
        self.actor, self.tamper = actor, tamper

    def __getattr__(self, method):
        return _Method(self, method)


class _Method:
    def __init__(self, handle, method):
        self._handle, self._method = handle, method

    def options(self, **_):
        return self

    def remote(self, *arguments, **named):
        if self._method == "put":
            buckets, index = arguments
            arguments = ([self._handle.tamper(bucket) for bucket in buckets], index)
        return getattr(self._handle.actor, self._method)(*arguments, **named)


class _Calls:
    def get(self, who, result):
        return result

    def get_all(self, who, results, straggler_s=None):
        return list(results)

    def stream_references(self, who, generator, beside=()):
        yield from generator


@pytest.fixture
def make():
    """(the transfer, its engines' targets), with a tamperer for the last engine's buckets."""

    def make(tamper=lambda bucket: bucket, verify=True, has_draft=True, num_engines=2):
        config = RunConfig.model_validate(
            {
                "rollout": {"num_engines": num_engines},
                "weight_sync": {"bucket_mib": 1, "verify_checksum": verify},
                "drafter": {"kind": "eagle3" if has_draft else "none"},
            }
        )
        trainer = TrainerActor.__ray_metadata__.modified_class(config.model_dump_json(), 0)
        trainer._trainer = _Source()
        actors, targets = [], []
        for index in range(num_engines):
            engine = RolloutActor.__ray_metadata__.modified_class()
            engine._engine = _Target()
            targets.append(engine._engine)
            actors.append(_Actor(engine, tamper if index == num_engines - 1 else lambda bucket: bucket))
        calls = _Calls()
        transfer = WeightTransfer(
            config,
            plan(config, 4.0),
            RemoteTrainer([_Actor(trainer)], calls),
            RemoteEngines(actors, calls, 8),
            calls,
            has_draft=has_draft,
        )
        return transfer, targets

    return make


@pytest.mark.parametrize("verify", [True, False])
def test_every_engine_has_what_the_trainer_has_and_the_way_there_is_measured(make, verify):
    transfer, targets = make(verify=verify)
    for _ in range(2):
        measured = transfer.sync()
        for target in targets:
            assert list(target.weights) == ["policy", "draft"]
            for part, weights in (("policy", POLICY), ("draft", DRAFT)):
                assert list(target.weights[part]) == list(weights)
                assert all(torch.equal(target.weights[part][name], tensor) for name, tensor in weights.items())
        assert measured["weight_sync/num_buckets"] == 2 + 1
        assert measured["weight_sync/size_bytes"] == 2 * 2**20 + 64
        assert measured["weight_sync/transfer_s"] > 0


def test_without_a_draft_only_the_policy_is_sent(make):
    transfer, (target,) = make(has_draft=False, num_engines=1)
    assert transfer.sync()["weight_sync/num_buckets"] == 2
    assert list(target.weights) == ["policy"]


def _corrupted(bucket):
    data = bucket.data.copy()
    data[bucket.slots[1].offset + 5] ^= 64
    return replace(bucket, data=data)


def _renamed(bucket):
    first, *rest = bucket.slots
    return replace(bucket, slots=(replace(first, name="layer.renamed"), *rest))


@pytest.mark.parametrize(
    ("tamper", "message"),
    [
        (_corrupted, r"Rollout engine 1 received layer\.1\.weight as float32\[64, 1024\] with checksum"),
        (_renamed, r"Rollout engine 1 never received layer\.0\.weight"),
        (lambda bucket: replace(bucket, slots=bucket.slots[1:]), r"Rollout engine 1 never received layer\.0\.weight"),
    ],
    ids=["a flipped bit", "a renamed tensor", "a missing tensor"],
)
def test_a_fault_on_the_way_ends_the_run_and_names_the_tensor(make, tamper, message):
    def only_the_policy(bucket):
        return tamper(bucket) if len(bucket.slots) > 1 else bucket

    transfer, _ = make(only_the_policy)
    with pytest.raises(WeightMismatchError, match=message):
        transfer.sync()
    make(only_the_policy, verify=False)[0].sync()  # and is not seen unless it is looked for
