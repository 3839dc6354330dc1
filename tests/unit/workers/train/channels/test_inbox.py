import threading

import pytest
import torch

from workers.train.channels.buckets import pack
from workers.train.channels.inbox import Inbox

WEIGHTS = {str(index): torch.full((4,), float(index)) for index in range(6)}
BUCKETS = list(pack(WEIGHTS.items(), 32))


class _Engine:
    def __init__(self, fail_at=None, take=100):
        self.taken, self.threads, self._fail_at, self._left = {}, set(), fail_at, take

    def update_weights(self, part, weights):
        self.threads.add((threading.current_thread().name, torch.get_num_threads()))
        for name, tensor in weights:
            if name == self._fail_at:
                raise ValueError(f"{name} has the wrong shape")
            self.taken[name] = tensor.clone()
            self._left -= 1
            if not self._left:
                return


def test_an_engine_sees_one_iteration_and_is_done_with_a_bucket_when_put_returns():
    engine = _Engine()
    inbox = Inbox(engine, "policy", verify=True)
    for number, bucket in enumerate(BUCKETS, 1):
        inbox.put(bucket)
        assert len(engine.taken) == 2 * number
    manifest = inbox.close()
    assert list(manifest) == list(engine.taken) == list(WEIGHTS)
    assert all(torch.equal(engine.taken[name], tensor) for name, tensor in WEIGHTS.items())
    assert engine.threads == {("update-policy", torch.get_num_threads())}


def test_nothing_is_summed_where_nothing_is_verified():
    inbox = Inbox(_Engine(), "draft", verify=False)
    inbox.put(BUCKETS[0])
    assert inbox.close() == {}


@pytest.mark.parametrize("fail_at", ["0", "3"])
def test_what_an_engine_raises_is_raised_where_its_bucket_was_put(fail_at):
    inbox = Inbox(_Engine(fail_at), "policy", verify=False)
    with pytest.raises(ValueError, match=f"{fail_at} has the wrong shape"):
        list(map(inbox.put, BUCKETS))


def test_an_engine_that_stops_taking_is_told_of():
    inbox = Inbox(_Engine(take=2), "policy", verify=False)
    inbox.put(BUCKETS[0])
    with pytest.raises(RuntimeError, match="when there was more to come"):
        inbox.put(BUCKETS[1])
