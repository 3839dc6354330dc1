"""Which failures of another process a new attempt could mend; tests/integration/workers has processes that die."""

import pytest
import ray
from ray.exceptions import ActorDiedError, ActorUnavailableError, GetTimeoutError, ObjectLostError, RayTaskError

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
