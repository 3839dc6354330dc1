import pytest
import torch

from workers.train.channels.buckets import pack

WEIGHTS = {
    "a": torch.arange(6, dtype=torch.float32).view(2, 3),
    "b": torch.arange(5, dtype=torch.bfloat16),
    "c": torch.tensor(7, dtype=torch.int64),
    "d": torch.arange(12, dtype=torch.float32).view(3, 4).t(),  # not contiguous
    "e": torch.empty(0, 4),
    "f": torch.tensor([True, False, True]),
}


@pytest.mark.parametrize("bucket_bytes", [1, 48, 64, 10_000])
def test_what_is_packed_comes_out_in_order_and_as_it_was(bucket_bytes):
    buckets = list(pack(WEIGHTS.items(), bucket_bytes))
    taken = [pair for bucket in buckets for pair in bucket.tensors()]
    assert [name for name, _ in taken] == list(WEIGHTS)
    for name, tensor in taken:
        assert tensor.dtype == WEIGHTS[name].dtype
        assert tensor.shape == WEIGHTS[name].shape
        assert torch.equal(tensor, WEIGHTS[name])


def test_buckets_are_as_large_as_asked_for_unless_one_tensor_is_larger():
    """32, 16, 16, 48, 0 and 16 bytes, in steps of 16."""
    assert [len(bucket.data) for bucket in pack(WEIGHTS.items(), 64)] == [64, 64]
    assert [len(bucket.data) for bucket in pack(WEIGHTS.items(), 47)] == [32, 32, 48, 16]
    assert list(pack([], 64)) == []


def test_no_more_is_asked_for_than_the_tensor_that_did_not_fit():
    asked = []

    def weights():
        for index in range(100):
            asked.append(index)
            yield str(index), torch.zeros(4)

    buckets = pack(weights(), 32)
    next(buckets)
    assert asked == [0, 1, 2]
    next(buckets)
    assert asked == [0, 1, 2, 3, 4]


def test_a_bucket_is_a_copy():
    weight = torch.zeros(4)
    (bucket,) = pack([("w", weight)], 64)
    weight += 1
    assert dict(bucket.tensors())["w"].sum() == 0
