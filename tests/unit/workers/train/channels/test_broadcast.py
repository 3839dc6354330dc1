"""Real processes that broadcast over gloo; NCCL needs several GPUs, which no test here has."""

import multiprocessing

import pytest
import torch

from workers.train.channels.broadcast import Broadcast, open_store
from workers.train.channels.buckets import pack

HOST = "127.0.0.1"
UPDATES = [
    {f"w{index}": torch.full((3, 4), float(index + 10 * update)).bfloat16() for index in range(5)}
    for update in range(3)
]


def _receive(rank, port, num_updates, results):
    """As an engine's process does: each update whole, by name, as bytes."""
    torch.set_num_threads(1)
    member = Broadcast.join(HOST, port, rank, 3, HOST, "gloo")
    for _ in range(num_updates):
        weights = {name: tensor for bucket in member.receive() for name, tensor in bucket.tensors()}
        results.put((rank, {name: (str(tensor.dtype), tensor.float().tolist()) for name, tensor in weights.items()}))


@pytest.fixture
def receivers():
    """Starts two, and ends them."""
    context = multiprocessing.get_context("fork")
    started = []

    def start(port, num_updates):
        results = context.Queue()
        for rank in (1, 2):
            started.append(context.Process(target=_receive, args=(rank, port, num_updates, results), daemon=True))
            started[-1].start()
        return results

    yield start
    for process in started:
        process.join(30)
        process.kill()
        process.join()


def test_every_engine_gets_every_update_whole_and_in_order(receivers):
    store = open_store(HOST)
    results = receivers(store.port, len(UPDATES))
    sender = Broadcast(store, 0, 3, HOST, "gloo")
    for update in UPDATES:
        for bucket in pack(update.items(), 64):  # two tensors each
            sender.send(bucket)
        sender.end()
        expected = {name: ("torch.bfloat16", tensor.float().tolist()) for name, tensor in update.items()}
        got = dict(results.get(timeout=60) for _ in (1, 2))
        assert got == {1: expected, 2: expected}
        assert list(got[1]) == list(update)


def test_what_buckets_held_is_forgotten_with_the_next_update(receivers):
    store = open_store(HOST)
    results = receivers(store.port, 3)
    sender = Broadcast(store, 0, 3, HOST, "gloo")
    kept = []
    for update in UPDATES:
        for bucket in pack(update.items(), 64):
            sender.send(bucket)
        sender.end()
        for _ in (1, 2):
            results.get(timeout=60)
        kept.append(store.num_keys())
    assert kept[0] == kept[1] == kept[2]
