import pytest
import torch
from transformers import LogitsProcessorList, MinPLogitsWarper, TemperatureLogitsWarper, TopKLogitsWarper
from transformers.generation import TopPLogitsWarper

from workers.algo.sampling import Truncation, sampling_probs, truncate

P = torch.tensor([[0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4]])


def by_transformers(logits, temperature, truncation):
    """Hugging Face's own processors in the order of its generate()."""
    warpers = LogitsProcessorList([TemperatureLogitsWarper(temperature)])
    if truncation.top_k:
        warpers.append(TopKLogitsWarper(truncation.top_k))
    if truncation.top_p < 1:
        warpers.append(TopPLogitsWarper(truncation.top_p))
    if truncation.min_p:
        warpers.append(MinPLogitsWarper(truncation.min_p))
    return warpers(None, logits.clone()).softmax(-1)


@pytest.mark.parametrize(
    ("truncation", "expected"),
    [
        (Truncation(), [0.4, 0.3, 0.2, 0.1]),
        (Truncation(top_k=2), [4 / 7, 3 / 7, 0, 0]),
        (Truncation(top_p=0.65), [4 / 7, 3 / 7, 0, 0]),  # 0.4 is not enough, 0.7 is
        (Truncation(top_p=0.75), [4 / 9, 3 / 9, 2 / 9, 0]),
        (Truncation(min_p=0.6), [4 / 7, 3 / 7, 0, 0]),  # at least 0.24
        (Truncation(top_k=3, top_p=0.75), [4 / 7, 3 / 7, 0, 0]),  # 0.7 of the 0.9 that top-k left
        (Truncation(top_k=3, top_p=0.75, min_p=0.8), [1, 0, 0, 0]),
        (Truncation(top_k=99, top_p=1e-9), [1, 0, 0, 0]),
    ],
)
def test_hand_computed_truncations(truncation, expected):
    both = [expected, expected[::-1]]
    torch.testing.assert_close(truncate(P, truncation), torch.tensor(both, dtype=torch.float32))


def test_equal_probabilities_are_kept_or_cut_together():
    p = torch.tensor([0.4, 0.2, 0.2, 0.2])
    for truncation in (Truncation(top_k=2), Truncation(top_p=0.5), Truncation(min_p=0.5)):
        torch.testing.assert_close(truncate(p, truncation), p)
    torch.testing.assert_close(truncate(p, Truncation(top_p=0.4)), torch.tensor([1.0, 0, 0, 0]))


@pytest.mark.parametrize(
    "truncation",
    [
        Truncation(top_k=5),
        Truncation(top_p=0.8),
        Truncation(min_p=0.1),
        Truncation(top_k=20, top_p=0.9),
        Truncation(top_k=20, top_p=0.9, min_p=0.05),
        Truncation(top_p=0.95, min_p=0.2),
    ],
)
@pytest.mark.parametrize("temperature", [0.6, 1.0, 1.7])
def test_the_distribution_is_that_of_transformers(truncation, temperature):
    logits = torch.randn(200, 50, generator=torch.Generator().manual_seed(3)) * 2
    expected = by_transformers(logits, temperature, truncation)
    probs = sampling_probs(logits, temperature, truncation)
    torch.testing.assert_close(probs, expected)
    assert torch.equal(probs > 0, expected > 0)
    assert (probs == 0).any()


def test_what_is_kept_keeps_its_proportions_and_adds_up_to_one():
    logits = torch.randn(6, 4, 30, generator=torch.Generator().manual_seed(4))
    probs = sampling_probs(logits, 1.0, Truncation(top_k=7, top_p=0.9))
    torch.testing.assert_close(probs.sum(-1), torch.ones(6, 4))
    full = logits.softmax(-1)
    ratios = torch.where(probs > 0, probs / full, torch.nan)
    largest, smallest = ratios.nan_to_num(0).amax(-1), ratios.nan_to_num(torch.inf).amin(-1)
    torch.testing.assert_close(largest, smallest)


def test_greedy_takes_the_first_of_equal_logits():
    probs = sampling_probs(torch.tensor([[1.0, 3.0, 3.0], [2.0, 0.0, 1.0]]), 0.0, Truncation(top_k=1))
    assert probs.tolist() == [[0, 1, 0], [1, 0, 0]]


@pytest.mark.parametrize(
    ("field", "value"), [("top_k", -1), ("top_p", 0.0), ("top_p", 1.1), ("min_p", 1.0), ("min_p", -0.1)]
)
def test_what_keeps_nothing_is_refused(field, value):
    with pytest.raises(ValueError, match=rf"{field} = {value}: must be"):
        Truncation(**{field: value})
