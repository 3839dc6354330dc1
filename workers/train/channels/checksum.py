"""Proof that an engine was given what the trainer has: a sum of each tensor, taken on both sides and compared."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

_WORD_BYTES = 8
_CHUNK_WORDS = 2**20
"""Words summed at a time, so that a sum needs 16 MiB beside the tensor, however large that is."""


class WeightMismatchError(RuntimeError):
    """An engine received other weights than the trainer sent. Nothing that the run computes from then on would mean
    anything, so it ends, and is not tried again."""


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What is compared of a tensor."""

    dtype: str
    shape: tuple[int, ...]
    checksum: int

    @classmethod
    def of(cls, tensor: Tensor) -> "Fingerprint":
        return cls(str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape), checksum(tensor))


Manifest = dict[str, Fingerprint]
"""By name, in the order of the weights."""


def checksum(tensor: Tensor) -> int:
    """sum_i (2 i + 1) x_i modulo 2^64, over the tensor's bytes read as 64-bit words x_i, i from 0, the last one filled
    up with zeros; in [0, 2^64), on whatever device the tensor is.

    Every weight is odd and so has an inverse modulo 2^64: a change of one word always changes the sum. So do two
    words changing places, unless their difference times twice their distance is a multiple of 2^64. Anything else that
    is not made to deceive goes unnoticed with a chance of 2^-64. It is no protection against an adversary.
    """
    data = tensor.detach().contiguous().view(-1).view(torch.uint8)
    num_whole = data.numel() // _WORD_BYTES * _WORD_BYTES
    rest = torch.zeros(_WORD_BYTES, dtype=torch.uint8, device=data.device)
    rest[: data.numel() - num_whole] = data[num_whole:]
    total = torch.zeros((), dtype=torch.int64, device=data.device)
    position = 0
    for words in (*_words(data[:num_whole]), rest.view(torch.int64)):
        index = torch.arange(position, position + len(words), device=data.device)
        total += (words * (2 * index + 1)).sum()  # int64 wraps around, which is the modulus
        position += len(words)
    return total.item() % 2**64


def _words(data: Tensor) -> Iterator[Tensor]:
    """The bytes as words, a chunk at a time. A view into a bucket is aligned, and what is not is copied."""
    if not data.numel():
        return
    if data.storage_offset() % _WORD_BYTES or data.data_ptr() % _WORD_BYTES:
        data = data.clone()
    yield from data.view(torch.int64).split(_CHUNK_WORDS)


def recorded(weights: Iterable[tuple[str, Tensor]], manifest: Manifest) -> Iterator[tuple[str, Tensor]]:
    """The same weights; each is entered into the manifest as it passes."""
    for name, tensor in weights:
        manifest[name] = Fingerprint.of(tensor)
        yield name, tensor


def compare(sent: Manifest, received: Manifest, who: str) -> None:
    """Raises WeightMismatchError naming the first tensor that is not what was sent."""
    for name, fingerprint in sent.items():
        if name not in received:
            raise WeightMismatchError(f"{who} never received {name}, which the trainer sent")
        if received[name] != fingerprint:
            raise WeightMismatchError(
                f"{who} received {name} as {_words_of(received[name])}, but the trainer sent {_words_of(fingerprint)}: "
                "memory or network between them is at fault, so leave these machines out"
            )
    if extra := [name for name in received if name not in sent]:
        raise WeightMismatchError(f"{who} received {extra[0]}, which the trainer never sent")


def _words_of(fingerprint: Fingerprint) -> str:
    return f"{fingerprint.dtype}{list(fingerprint.shape)} with checksum {fingerprint.checksum:016x}"
