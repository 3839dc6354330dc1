"""A policy's folder in Hugging Face layout, written from tensors that come one by one."""

import json
from collections.abc import Iterator
from pathlib import Path

from safetensors.torch import save_file
from torch import Tensor

from workers.train.megatron.shape import PolicyShape

_FILE_BYTES = 4 * 2**30
"""Tensors of about this size are in memory before a file of them is written."""


def write_policy(folder: Path, shape: PolicyShape, weights: Iterator[tuple[str, Tensor]], *, is_writer: bool) -> None:
    """config.json, which is that of the shape with the type of what is written, and safetensors files of a few GiB.

    is_writer: ranks that are not walk through the weights and write nothing.
    """
    writer = _Writer(folder) if is_writer else None
    for name, tensor in weights:
        if writer is not None:
            writer.add(name, tensor)
    if writer is not None:
        writer.close()
        document = {**shape.document, "dtype": writer.dtype}
        (folder / "config.json").write_text(json.dumps(document, indent=2) + "\n")


class _Writer:
    """Collects tensors into files."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.dtype = "float32"
        self._folder = folder
        self._held: dict[str, Tensor] = {}
        self._held_bytes = self._total_bytes = 0
        self._files: list[list[str]] = []
        """Names of the tensors in each file."""

    def add(self, name: str, tensor: Tensor) -> None:
        """Take one tensor, and write a file where enough are held."""
        self.dtype = str(tensor.dtype).removeprefix("torch.")
        self._held[name] = tensor.detach().cpu().contiguous()
        self._held_bytes += tensor.nbytes
        self._total_bytes += tensor.nbytes
        if self._held_bytes >= _FILE_BYTES:
            self._write()

    def close(self) -> None:
        """Write what is left, and give the files the names that readers look for, which hold their number."""
        if self._held:
            self._write()
        if len(self._files) == 1:
            self._part(0).rename(self._folder / "model.safetensors")
            return
        weight_map: dict[str, str] = {}
        for index, names in enumerate(self._files):
            file_name = f"model-{index + 1:05d}-of-{len(self._files):05d}.safetensors"
            self._part(index).rename(self._folder / file_name)
            weight_map |= dict.fromkeys(names, file_name)
        document = {"metadata": {"total_size": self._total_bytes}, "weight_map": weight_map}
        (self._folder / "model.safetensors.index.json").write_text(json.dumps(document, indent=2) + "\n")

    def _write(self) -> None:
        save_file(self._held, self._part(len(self._files)), metadata={"format": "pt"})
        self._files.append(list(self._held))
        self._held, self._held_bytes = {}, 0

    def _part(self, index: int) -> Path:
        return self._folder / f"part-{index}.safetensors"
