"""The mend's function against its definition; that it is needed, and does it, is in test_losslessness.py."""

import pytest
import torch


@pytest.fixture(scope="module")
def expand():
    from workers.rollout.vllm.library import load_vllm

    load_vllm()
    from workers.rollout.vllm.mends import expand_batch_to_tokens

    return expand_batch_to_tokens


def slow(values, cumulative, replace_from, replace_to):
    counts = [after - before for before, after in zip([0, *cumulative], cumulative, strict=False)]
    return [
        replace_to if value == replace_from else value
        for value, count in zip(values, counts, strict=True)
        for _ in range(count)
    ]


def test_hand_computed(expand):
    temperatures, cumulative = torch.tensor([0.5, 0.0, 2.0]), torch.tensor([2, 3, 3], dtype=torch.int32)
    expanded = expand(temperatures, cumulative, 3, replace_from=0, replace_to=1)
    assert expanded.tolist() == [0.5, 0.5, 1.0]
    assert expanded.dtype == torch.float32


def test_against_the_slow_reference(expand):
    generator = torch.Generator().manual_seed(0)
    for _ in range(20):
        values = torch.randint(0, 4, (9,), generator=generator, dtype=torch.int32)
        cumulative = torch.randint(0, 5, (9,), generator=generator).cumsum(0).int()
        number = int(cumulative[-1])
        expected = slow(values.tolist(), cumulative.tolist(), 3, 7)
        assert expand(values, cumulative, number, 3, 7).tolist() == expected


def test_no_tokens_are_no_values(expand):
    assert expand(torch.tensor([1.0]), torch.tensor([0], dtype=torch.int32), 0).tolist() == []
