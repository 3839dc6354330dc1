import pytest
import torch

from workers.algo.sampling import Truncation
from workers.rollout.sampler import Sampler
from workers.rollout.torch_operations import TorchOperations

LOGITS = torch.tensor([[0.0, 1.0, 2.0], [3.0, 0.0, 0.0]])


def sampler(temperature, seed=0, truncation=Truncation()):
    operations = TorchOperations(1e-6, torch.float32, torch.device("cpu"))
    return Sampler(temperature, truncation, torch.Generator().manual_seed(seed), operations)


def test_probabilities_are_at_the_temperature():
    expected = (LOGITS / 0.5).softmax(-1)
    torch.testing.assert_close(sampler(0.5).probs(LOGITS.bfloat16()), expected)


def test_temperature_zero_is_the_argmax():
    probs = sampler(0).probs(LOGITS)
    assert probs.tolist() == [[0, 0, 1], [1, 0, 0]]
    assert sampler(0).draw(probs).tolist() == [2, 0]


def test_draws_follow_the_probabilities_and_the_seed():
    probs = LOGITS.softmax(-1)[:1].expand(30_000, -1).contiguous()
    drawn = sampler(1.0).draw(probs)
    shares = torch.bincount(drawn, minlength=3) / 30_000
    assert shares.tolist() == pytest.approx(probs[0].tolist(), abs=0.012)  # four standard errors
    assert torch.equal(drawn, sampler(1.0).draw(probs))
    assert not torch.equal(drawn, sampler(1.0, seed=1).draw(probs))


def test_truncation_comes_after_the_temperature():
    probs = sampler(0.5, truncation=Truncation(top_k=2)).probs(LOGITS[:1])
    expected = torch.tensor([2.0, 4.0]).softmax(-1)
    assert probs[0].tolist() == pytest.approx([0, *expected.tolist()])


def test_truncation_leaves_greedy_choices_alone():
    assert sampler(0, truncation=Truncation(top_p=0.1)).probs(LOGITS).tolist() == [[0, 0, 1], [1, 0, 0]]
