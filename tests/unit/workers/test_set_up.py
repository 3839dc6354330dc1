"""What set-up does before there is anything to set up; tests/integration/workers has whole runs."""

import logging
from types import SimpleNamespace

import pytest
import ray
from ray.exceptions import ActorDiedError

from workers import set_up
from workers.placement.processes import Processes
from workers.process_log import Process
from workers.ray_calls import ProcessLostError, RayCalls
from workers.set_up import SetUp
from workers.stopping import StoppedError

HERE = Process("host", "127.0.0.1", 1, None)


class _Answer:
    """What a call will give: a process, an error, or nothing yet."""

    def __init__(self, outcome):
        self.outcome = outcome


def _actor(answer):
    return SimpleNamespace(ready=SimpleNamespace(remote=lambda: answer))


@pytest.fixture
def waiting(monkeypatch):
    """A set-up whose trainer answers, and whose engines do as they are told."""

    def make(*engines, check=lambda: None):
        def wait(answers, timeout):
            ready = [answer for answer in answers if answer.outcome is not None]
            return ready[:1], ready[1:]

        def get(answer, timeout):
            if isinstance(answer.outcome, Exception):
                raise answer.outcome
            return answer.outcome

        monkeypatch.setattr(ray, "wait", wait)
        monkeypatch.setattr(ray, "get", get)
        made = SetUp.__new__(SetUp)
        made._processes = Processes.__new__(Processes)
        made._processes.trainers = [_actor(_Answer(HERE))]
        made._processes.engines = [_actor(_Answer(outcome)) for outcome in engines]
        made._calls = RayCalls(lambda: None)
        made._stop = SimpleNamespace(check=check)
        return made

    return make


def test_waiting_ends_when_every_process_runs(waiting):
    waiting(HERE, HERE)._wait_for_processes()


def test_an_owners_stop_is_seen_while_the_cluster_is_full(waiting, monkeypatch, caplog):
    asked = []

    def check():
        asked.append(1)
        if len(asked) == 3:
            raise StoppedError("the run was asked to stop")

    monkeypatch.setattr(set_up, "_PATIENCE_S", 0.0)
    with caplog.at_level(logging.WARNING), pytest.raises(StoppedError):
        waiting(HERE, None, check=check)._wait_for_processes()
    assert caplog.text.count("other runs may hold it") == 1


def test_a_process_that_cannot_start_is_named_as_everywhere_else(waiting):
    with pytest.raises(ProcessLostError, match="Rollout engine 1's process died"):
        waiting(HERE, ActorDiedError())._wait_for_processes()
