"""What set-up does before there is anything to set up; tests/integration/workers has whole runs."""

import logging
from types import SimpleNamespace

import pytest
import ray
from ray.exceptions import ActorDiedError, GetTimeoutError

from workers import set_up
from workers.ray_calls import ProcessLostError
from workers.set_up import SetUp
from workers.stopping import StoppedError


def _actor(answer):
    return SimpleNamespace(ready=SimpleNamespace(remote=lambda: answer))


@pytest.fixture
def waiting(monkeypatch):
    """A set-up whose trainer answers, and whose engines do as they are told: a number is a result."""

    def make(*engines, check=lambda: None):
        def get(reference, timeout):
            if isinstance(reference, Exception):
                raise reference
            return reference

        monkeypatch.setattr(ray, "get", get)
        made = SetUp.__new__(SetUp)
        made._trainer = SimpleNamespace(actor=_actor(0))
        made._engines = SimpleNamespace(actors=[_actor(answer) for answer in engines])
        made._stop = SimpleNamespace(check=check)
        return made

    return make


def test_waiting_ends_when_every_process_runs(waiting):
    waiting(0, 0)._wait_for_processes()


def test_an_owners_stop_is_seen_while_the_cluster_is_full(waiting, monkeypatch, caplog):
    asked = []

    def check():
        asked.append(1)
        if len(asked) == 3:
            raise StoppedError("the run was asked to stop")

    monkeypatch.setattr(set_up, "_PATIENCE_S", 0.0)
    with caplog.at_level(logging.WARNING), pytest.raises(StoppedError):
        waiting(0, GetTimeoutError(), check=check)._wait_for_processes()
    assert caplog.text.count("other runs may hold its CPUs") == 1


def test_a_process_that_cannot_start_is_named_as_everywhere_else(waiting):
    with pytest.raises(ProcessLostError, match="Rollout engine 1's process died"):
        waiting(0, ActorDiedError())._wait_for_processes()
