"""Both ways at once, as where one engine shares the GPU of rank 0 and the others are reached by broadcast."""

import multiprocessing

import pytest
import torch

from contract.config.resources import WeightSyncConfig
from workers.placement.weight_ends import Meeting, ReceivingEnd, SendingEnd
from workers.train.channels.checksum import compare

HOST = "127.0.0.1"
WEIGHTS = {f"layer.{index}.weight": torch.full((512, 512), float(index)) for index in range(5)}  # 1 MiB each


class _Source:
    def __init__(self, fail_at=None):
        self._fail_at = fail_at

    def export_weights(self, part):
        for name, tensor in WEIGHTS.items():
            if name == self._fail_at:
                raise ValueError(f"{name} cannot be gathered")
            yield name, tensor


class _Target:
    def __init__(self):
        self.weights = {}

    def update_weights(self, part, weights):
        self.weights = {name: tensor.clone() for name, tensor in weights}


def _receive(meeting, results):
    torch.set_num_threads(1)
    end, target = ReceivingEnd(verify=True), _Target()
    end.join(meeting, 1, HOST)
    for part in ("policy", "draft"):
        manifest = end.receive(target, part)
        results.put((manifest, {name: tensor[0, 0].item() for name, tensor in target.weights.items()}))


def test_one_export_reaches_those_who_are_handed_buckets_and_those_in_the_group():
    sending = SendingEnd(WeightSyncConfig(bucket_mib=2, verify_checksum=True), "array", num_handed=1)
    meeting = Meeting(HOST, sending.open(HOST), 2, "gloo")
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    process = context.Process(target=_receive, args=(meeting, results), daemon=True)
    process.start()
    sending.join(meeting)
    handed, target = ReceivingEnd(verify=True), _Target()
    for part in ("policy", "draft"):
        handed.begin(target, part)
        for buckets in sending.send(_Source(), part):
            handed.put(buckets, 0)
        manifest, firsts = results.get(timeout=60)
        assert (sending.sent.num_bytes, sending.sent.num_buckets) == (5 * 2**20, 3)
        compare(sending.sent.manifest, manifest, "the engine in the group")
        compare(sending.sent.manifest, handed.end(), "the engine that is handed buckets")
        assert firsts == {name: tensor[0, 0].item() for name, tensor in WEIGHTS.items()}
        assert all(torch.equal(target.weights[name], tensor) for name, tensor in WEIGHTS.items())
    process.join(30)
    assert process.exitcode == 0


def test_an_export_that_failed_says_nothing_of_the_last_one():
    sending = SendingEnd(WeightSyncConfig(bucket_mib=2), "array", num_handed=0)
    assert list(sending.send(_Source(), "policy")) == [[], [], []]
    assert sending.sent.num_buckets == 3
    with pytest.raises(ValueError, match=r"layer\.4\.weight cannot be gathered"):
        list(sending.send(_Source("layer.4.weight"), "policy"))
    assert sending.sent is None
