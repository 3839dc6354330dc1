import pytest
import torch

from workers.train.channels import checksum as module
from workers.train.channels.checksum import Fingerprint, WeightMismatchError, checksum, compare, recorded


def _reference(tensor):
    data = bytes(tensor.contiguous().view(-1).view(torch.uint8).tolist())
    data += bytes(-len(data) % 8)
    words = [int.from_bytes(data[i : i + 8], "little") for i in range(0, len(data), 8)]
    return sum((2 * i + 1) * word for i, word in enumerate(words)) % 2**64


def test_by_hand():
    """1 * 5 + 3 * 7 + 5 * 2 = 36; and -1 is 2^64 - 1."""
    assert checksum(torch.tensor([5, 7, 2])) == 36
    assert checksum(torch.tensor([-1, 0])) == 2**64 - 1
    assert checksum(torch.tensor([], dtype=torch.float32)) == 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.uint8])
@pytest.mark.parametrize("size", [1, 7, 8, 9, 1000, 1003])
def test_it_is_the_sum_that_it_says(monkeypatch, dtype, size):
    monkeypatch.setattr(module, "_CHUNK_WORDS", 16)
    tensor = (torch.randn(size, generator=torch.Generator().manual_seed(size)) * 100).to(dtype)
    assert checksum(tensor) == _reference(tensor)


def test_views_that_are_not_aligned_or_not_contiguous_count_by_their_elements():
    data = torch.arange(101, dtype=torch.uint8)
    assert checksum(data[3:90]) == checksum(data[3:90].clone()) == _reference(data[3:90])
    matrix = torch.randn(5, 7)
    assert checksum(matrix.t()) == checksum(matrix.t().contiguous()) != checksum(matrix)


def test_every_flipped_bit_and_every_swap_of_neighbours_is_seen():
    tensor = torch.randn(40, generator=torch.Generator().manual_seed(1))
    whole, words = checksum(tensor), tensor.view(torch.int32)
    for index in range(40):
        for bit in (0, 7, 22, 31):
            words[index] ^= -(2**31) if bit == 31 else 1 << bit
            assert checksum(tensor) != whole
            words[index] ^= -(2**31) if bit == 31 else 1 << bit
    for index in range(39):
        tensor[[index, index + 1]] = tensor[[index + 1, index]]
        assert checksum(tensor) != whole
        tensor[[index, index + 1]] = tensor[[index + 1, index]]
    assert checksum(tensor) == whole


def test_weights_are_entered_as_they_pass():
    manifest = {}
    weights = recorded([("a", torch.tensor([5])), ("b", torch.zeros(2, 2))], manifest)
    assert manifest == {}
    assert next(weights)[0] == "a"
    assert manifest == {"a": Fingerprint("int64", (1,), 5)}
    assert next(weights)[0] == "b"
    assert list(manifest) == ["a", "b"]


SENT = {"a": Fingerprint("float32", (2,), 1), "b": Fingerprint("float32", (3,), 2)}


@pytest.mark.parametrize(
    ("received", "message"),
    [
        ({"a": SENT["a"]}, "Engine 1 never received b"),
        (SENT | {"b": Fingerprint("float32", (3,), 3)}, r"Engine 1 received b as float32\[3\] with checksum 0+3"),
        (SENT | {"b": Fingerprint("bfloat16", (3,), 2)}, r"received b as bfloat16\[3\]"),
        ({"a": SENT["a"], "c": SENT["b"]}, "never received b"),
        (SENT | {"c": SENT["b"]}, "received c, which the trainer never sent"),
    ],
)
def test_the_first_difference_is_named(received, message):
    with pytest.raises(WeightMismatchError, match=message):
        compare(SENT, received, "Engine 1")
    compare(SENT, dict(reversed(SENT.items())), "Engine 1")
