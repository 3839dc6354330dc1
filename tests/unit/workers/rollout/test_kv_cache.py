import pytest
import torch

from workers.rollout.kv_cache import KvCache

K = torch.randn(3, 2, 2, 4, generator=torch.Generator().manual_seed(0))
V = torch.randn(3, 2, 2, 4, generator=torch.Generator().manual_seed(1))
ROWS = torch.arange(3).unsqueeze(1)
POSITIONS = torch.tensor([[0, 1], [3, 4], [2, 3]])


def cache(transpose_keys, num_rows=3):
    return KvCache.allocate(2, num_rows, 6, 2, 4, transpose_keys=transpose_keys, device=torch.device("cpu"))


@pytest.fixture(params=[True, False], ids=["transposed", "plain"])
def written(request):
    filled = cache(request.param)
    filled.write(1, POSITIONS, ROWS, K, V)
    return filled


def test_what_is_written_is_read_where_it_stands(written):
    keys, values = written.read(1, 3, 5)
    assert keys.shape == (6, 4, 5)
    assert values.shape == (6, 5, 4)
    for row, head, new in [(0, 0, 0), (1, 1, 1), (2, 0, 1)]:
        position = POSITIONS[row, new]
        assert torch.equal(keys[row * 2 + head, :, position], K[row, new, head])
        assert torch.equal(values[row * 2 + head, position], V[row, new, head])
    assert keys.count_nonzero() == K.numel()
    assert written.read(0, 3, 5)[0].count_nonzero() == 0


def test_reading_makes_no_copy(written):
    keys, values = written.read(1, 2, 4)
    assert keys.untyped_storage().data_ptr() == written.keys[1].untyped_storage().data_ptr()
    assert values.untyped_storage().data_ptr() == written.values[1].untyped_storage().data_ptr()


@pytest.mark.parametrize("transpose_target", [True, False])
def test_rows_are_copied_between_caches_of_either_layout(written, transpose_target):
    target = cache(transpose_target, num_rows=4)
    target.copy_rows(torch.tensor([3, 0]), written, torch.tensor([1, 2]), 4)
    for mine, theirs in zip(target.keys + target.values, written.keys + written.values, strict=True):
        assert torch.equal(mine[3, :4], theirs[1, :4])
        assert torch.equal(mine[0, :4], theirs[2, :4])
        assert mine[3, 4:].count_nonzero() == 0


def test_a_moved_row_is_whole(written):
    expected = [tensor[2].clone() for tensor in written.keys + written.values]
    written.move_row(2, 0)
    assert all(torch.equal(t[0], e) for t, e in zip(written.keys + written.values, expected, strict=True))
