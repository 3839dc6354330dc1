"""Which failures of another process a new attempt could mend; tests/integration/workers has processes that die."""

import socket

import pytest
import ray
from ray.exceptions import ActorDiedError, ActorUnavailableError, GetTimeoutError, ObjectLostError, RayTaskError

from workers.process_log import Process
from workers.ray_calls import ProcessLostError, RayCalls


def _task_error(cause):
    return RayTaskError(
        "call", f"traceback of {cause}", cause, proctitle="p", pid=1, ip="127.0.0.1"
    ).as_instanceof_cause()


@pytest.fixture
def get(monkeypatch):
    """What RayCalls.get() makes of answers, which are raised where they are exceptions."""

    def call(*answers, interrupt=lambda: None):
        left = list(answers)

        def answer(reference, timeout):
            if isinstance(left[0], Exception):
                raise left.pop(0)
            return left.pop(0)

        monkeypatch.setattr(ray, "get", answer)
        return RayCalls(interrupt).get("Rollout engine 0", None)

    return call


DIED = ActorDiedError()
LOST = ObjectLostError("00" * 28, None, "")


@pytest.mark.parametrize("error", [DIED, ActorUnavailableError("gone", None)])
def test_a_process_that_died_is_named(get, error):
    with pytest.raises(ProcessLostError, match="Rollout engine 0's process died"):
        get(error)


@pytest.mark.parametrize("cause", [DIED, LOST, _task_error(DIED)], ids=["actor", "object", "nested"])
def test_a_call_that_failed_because_its_argument_was_lost_may_be_tried_anew(get, cause):
    """An engine that takes up weights from a trainer that died: the engine's call fails, and the trainer is why."""
    with pytest.raises(ProcessLostError, match="A process that Rollout engine 0 waited for was lost"):
        get(_task_error(cause))


def test_what_a_call_raised_itself_is_raised_here(get):
    with pytest.raises(ValueError, match="wrong shape"):
        get(_task_error(ValueError("wrong shape")))


def test_waiting_goes_on_until_an_answer_or_an_interrupt(get):
    assert get(GetTimeoutError(), GetTimeoutError(), 7) == 7

    def interrupt():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        get(GetTimeoutError(), 7, interrupt=interrupt)


class _Reference:
    """A call's result, there after so many looks; an exception is raised."""

    def __init__(self, outcome, num_looks=0):
        self.outcome, self.num_looks = outcome, num_looks


@pytest.fixture
def calls(monkeypatch):
    def wait(references, timeout):
        ready = [reference for reference in references if reference.num_looks <= 0]
        for reference in references:
            reference.num_looks -= 1
        return ready[:1], []

    def get(reference, timeout):
        if isinstance(reference.outcome, Exception):
            raise reference.outcome
        return reference.outcome

    monkeypatch.setattr(ray, "wait", wait)
    monkeypatch.setattr(ray, "get", get)
    return RayCalls(lambda: None)


def test_results_of_all_come_in_order_whoever_is_first(calls):
    assert calls.get_all("Engine", [_Reference("a", 3), _Reference("b"), _Reference("c", 1)]) == ["a", "b", "c"]


def test_the_first_failure_ends_the_wait_for_all(calls):
    """Rank 0 would wait for ever for the rank that died."""
    with pytest.raises(ProcessLostError, match="Rank 1's process died"):
        calls.get_all("Rank", [_Reference("never", 10**9), _Reference(DIED, 2)])


def test_a_rank_that_hangs_while_others_have_answered_is_named(calls, tmp_path):
    log = tmp_path / "log"
    log.write_text("NCCL WARN\nwaiting for rank 0\n")
    calls.know("Rank 1", Process(socket.gethostname(), "127.0.0.1", 7, str(log)))
    references = [_Reference("done"), _Reference("never", 10**9), _Reference("never", 10**9)]
    with pytest.raises(ProcessLostError, match=r"Rank 1, 2 hangs: no answer within 0 s(?s:.*)waiting for rank 0"):
        calls.get_all("Rank", references, straggler_s=0.0)


def test_a_process_that_died_is_named_with_the_end_of_its_log(calls, tmp_path):
    log = tmp_path / "log"
    log.write_text("".join(f"line {i}\n" for i in range(100)))
    calls.know("Engine 0", Process(socket.gethostname(), "127.0.0.1", 7, str(log)))
    with pytest.raises(ProcessLostError) as error:
        calls.get("Engine 0", _Reference(DIED))
    assert "Engine 0's process died" in str(error.value)
    assert f"It was process 7 on {socket.gethostname()}. Its log, {log}, ends with:\nline 80\n" in str(error.value)
    assert str(error.value).endswith("line 99")
