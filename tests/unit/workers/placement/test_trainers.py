"""All ranks are called together, and rank 0 answers; tests/integration has ranks in processes of their own."""

import pytest
import torch

from workers.placement import trainers
from workers.placement.trainers import RemoteTrainer, TrainerActor
from workers.ray_calls import ProcessLostError, RayCalls

CONFIG = '{"drafter": {"kind": "none"}}'


class _Trainer:
    """A rank's part."""

    def __init__(self, rank):
        self.rank, self.walked = rank, []

    def train_draft(self, batch):
        return {"draft/loss_nats": float(self.rank)}

    def export_weights(self, part):
        for name in ("a", "b"):
            self.walked.append((part, name))
            if self.rank == 0:
                yield name, torch.zeros(2)


def _actor(rank):
    actor = TrainerActor.__ray_metadata__.modified_class(CONFIG, rank)
    actor._trainer = _Trainer(rank)
    return actor


def test_only_rank_0_answers_for_the_trainer():
    assert _actor(0).call("train_draft", None) == {"draft/loss_nats": 0.0}
    assert _actor(1).call("train_draft", None) is None


def test_every_rank_walks_through_an_export():
    actor = _actor(1)
    actor.walk_through("draft")
    assert actor._trainer.walked == [("draft", "a"), ("draft", "b")]


def test_a_port_that_is_free():
    ports = {_actor(0).free_port() for _ in range(3)}
    assert all(1024 <= port < 65536 for port in ports)


class _Remote:
    """A rank whose calls are answered at once, or never."""

    def __init__(self, rank, asked, answer=True):
        self._asked = asked
        self.call = self
        self._reference = type("Reference", (), {"rank": rank, "is_there": answer})()

    def remote(self, method, *arguments):
        self._asked.append((self._reference.rank, method, arguments))
        return self._reference


@pytest.fixture
def ray(monkeypatch):
    def wait(references, timeout):
        return [reference for reference in references if reference.is_there][:1], []

    monkeypatch.setattr("ray.wait", wait)
    monkeypatch.setattr("ray.get", lambda reference, timeout: {"rank": float(reference.rank)})
    monkeypatch.setattr("ray.put", lambda value: ("stored", value))


@pytest.mark.usefixtures("ray")
def test_all_ranks_get_the_same_arguments_which_are_stored_once():
    asked = []
    trainer = RemoteTrainer([_Remote(rank, asked) for rank in range(3)], RayCalls(lambda: None))
    assert trainer.train_draft("batch") == {"rank": 0.0}
    assert asked == [(rank, "train_draft", (("stored", "batch"),)) for rank in range(3)]


@pytest.mark.usefixtures("ray")
def test_a_rank_that_hangs_is_named(monkeypatch):
    monkeypatch.setattr(trainers, "_STRAGGLER_S", 0.0)
    ranks = [_Remote(rank, [], answer=rank != 2) for rank in range(4)]
    with pytest.raises(ProcessLostError, match="Trainer rank 2 hangs: no answer within 0 s"):
        RemoteTrainer(ranks, RayCalls(lambda: None)).train_draft("batch")
