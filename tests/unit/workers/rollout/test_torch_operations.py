import pytest
import torch

from workers.model.config import ModelConfig
from workers.rollout.graphs import StaticOperations
from workers.rollout.torch_operations import TorchOperations

CONFIG = ModelConfig(
    vocab_size=12,
    hidden_size=16,
    intermediate_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    head_dim=4,
    max_position_embeddings=64,
)
QKV = torch.randn(3, 2, 32, generator=torch.Generator().manual_seed(0))
START = torch.tensor([0, 3, 2])


@pytest.fixture
def operations():
    return TorchOperations(1e-6, torch.float32, torch.device("cpu"))


@pytest.fixture(params=[True, False], ids=["transposed", "plain"])
def written(request, operations):
    cache = operations.allocate_cache(CONFIG, 2, 3, 6, is_verified=request.param)
    cache.write(1, QKV, None, cache.place(START, 2, 5))
    return cache


def test_values_are_written_where_they_stand(written):
    values = QKV.unflatten(2, (8, 4))[:, :, 6:]
    for row, start in enumerate(START.tolist()):
        assert torch.equal(written.values[1][row, start : start + 2], values[row])
    assert written.values[1].count_nonzero() == values.numel()
    assert written.keys[0].count_nonzero() == 0


def test_keys_are_turned_by_their_position(written):
    """At position 0 not at all; elsewhere by the angle position * theta^(-2 j / E) in the plane (j, j + E / 2)."""
    keys = QKV.unflatten(2, (8, 4))[:, :, 4:6]
    torch.testing.assert_close(written.keys[1][0, 0], keys[0, 0])
    angle = torch.tensor([3.0, 3.0 * CONFIG.rope_theta**-0.5])
    a, b = keys[1, 0, 0, :2], keys[1, 0, 0, 2:]
    turned = torch.cat([a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()])
    torch.testing.assert_close(written.keys[1][1, 3, 0], turned)


def test_nothing_behind_a_token_is_attended_to(operations):
    cache = operations.allocate_cache(CONFIG, 1, 3, 6, is_verified=True)
    first = cache.attend(0, QKV, None, cache.place(torch.zeros(3, dtype=torch.int64), 2, 2))
    changed = QKV.clone()
    changed[:, 1] += 1
    second = cache.attend(0, changed, None, cache.place(torch.zeros(3, dtype=torch.int64), 2, 2))
    assert torch.equal(first[:, 0], second[:, 0])
    assert not torch.allclose(first[:, 1], second[:, 1])


def test_fused_attention_is_plain_attention(operations):
    """In the middle of sequences, and at their beginning, where every token stands behind all before it."""
    fused = StaticOperations(1e-6, torch.float32, torch.device("cpu"))
    plain, other = (ops.allocate_cache(CONFIG, 1, 3, 6, is_verified=True) for ops in (operations, fused))
    for start, span in [(torch.zeros(3, dtype=torch.int64), 2), (START, 5)]:
        expected, got = (cache.attend(0, QKV, None, cache.place(start, 2, span)) for cache in (plain, other))
        torch.testing.assert_close(got, expected)
    assert other.place(torch.zeros(3, dtype=torch.int64), 2, 2).bias_R1QS is None


@pytest.mark.parametrize("is_verified", [True, False])
def test_rows_are_copied_between_caches_of_either_layout(written, operations, is_verified):
    target = operations.allocate_cache(CONFIG, 2, 4, 6, is_verified=is_verified)
    target.copy_rows(torch.tensor([3, 0]), written, torch.tensor([1, 2]), 4)
    for mine, theirs in zip(target.keys + target.values, written.keys + written.values, strict=True):
        assert torch.equal(mine[3, :4], theirs[1, :4])
        assert torch.equal(mine[0, :4], theirs[2, :4])
        assert mine[3, 4:].count_nonzero() == 0


def test_a_moved_row_is_whole(written):
    expected = [tensor[2].clone() for tensor in written.keys + written.values]
    written.move_row(2, 0)
    assert all(torch.equal(t[0], e) for t, e in zip(written.keys + written.values, expected, strict=True))
