"""Turns buckets that are handed in one call at a time into the iteration that an engine's update_weights() wants."""

import threading
from collections.abc import Iterator
from queue import Queue

import torch

from workers.train.channels.buckets import Bucket
from workers.train.channels.checksum import Manifest, recorded
from workers.train.weight_sync import Part, WeightTarget


class Inbox:
    """One update of one engine. The engine runs in a thread, but never at the same time as its caller: put() returns
    when the engine is done with the bucket and asks for the next."""

    def __init__(self, engine: WeightTarget, part: Part, *, verify: bool) -> None:
        self._engine, self._part, self._verify = engine, part, verify
        self._given: Queue[Bucket | None] = Queue()
        self._asked: Queue[None] = Queue()
        self._manifest: Manifest = {}
        self._error: BaseException | None = None
        self._is_over = False
        self._num_threads = torch.get_num_threads()  # a new thread would take as many as there are processors
        self._thread = threading.Thread(target=self._update, name=f"update-{part}", daemon=True)
        self._thread.start()
        self._wait()

    def put(self, bucket: Bucket) -> None:
        """Raises what the engine raised."""
        if self._is_over:
            raise RuntimeError(f"the engine took its {self._part} for complete when there was more to come")
        self._given.put(bucket)
        self._wait()

    def close(self) -> Manifest:
        """The update is complete; what arrived, where that was to be verified. Raises what the engine raised."""
        self._given.put(None)
        self._thread.join()
        self._raise()
        return self._manifest

    def _wait(self) -> None:
        self._asked.get()
        self._raise()

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error

    def _update(self) -> None:
        torch.set_num_threads(self._num_threads)
        weights = self._weights()
        try:
            self._engine.update_weights(self._part, recorded(weights, self._manifest) if self._verify else weights)
        except BaseException as error:
            self._error = error
        self._is_over = True
        self._asked.put(None)

    def _weights(self) -> Iterator[tuple[str, torch.Tensor]]:
        while True:
            self._asked.put(None)
            bucket = self._given.get()
            if bucket is None:
                return
            yield from bucket.tensors()
