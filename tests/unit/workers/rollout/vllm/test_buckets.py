import torch

from workers.rollout.vllm.buckets import in_buckets


def named(*sizes):
    return [(str(index), torch.zeros(size)) for index, size in enumerate(sizes)]


def test_tensors_are_put_together_up_to_the_limit_in_their_order():
    buckets = list(in_buckets(named(2, 2, 1, 9, 1), max_bytes=4 * 4))
    assert [[name for name, _ in bucket] for bucket in buckets] == [["0", "1"], ["2"], ["3"], ["4"]]


def test_a_bucket_is_made_before_the_next_tensor_is_asked_for():
    asked = []

    def weights():
        for name, tensor in named(4, 4, 4):
            asked.append(name)
            yield name, tensor

    next(in_buckets(weights(), max_bytes=4 * 4))
    assert asked == ["0", "1"]


def test_nothing_makes_no_bucket():
    assert list(in_buckets([], 1)) == []
