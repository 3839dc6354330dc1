"""Buckets as objects; CUDA handles need a GPU that two processes share, which no test here has."""

import pickle

import torch

from workers.train.channels.buckets import pack
from workers.train.channels.handover import ArrayBucket

WEIGHTS = {"a": torch.randn(3, 5), "b": torch.arange(7, dtype=torch.bfloat16)}


def test_the_bytes_travel_out_of_band_and_are_not_copied():
    (bucket,) = pack(WEIGHTS.items(), 1000)
    buffers = []
    message = pickle.dumps(ArrayBucket.of(bucket), protocol=5, buffer_callback=buffers.append)
    assert [buffer.raw().nbytes for buffer in buffers] == [len(bucket.data)]
    opened = pickle.loads(message, buffers=[buffer.raw().toreadonly() for buffer in buffers]).open()
    assert opened.data.data_ptr() == bucket.data.data_ptr()
    for name, tensor in opened.tensors():
        assert torch.equal(tensor, WEIGHTS[name])
