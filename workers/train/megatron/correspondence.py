"""Which tensors of a Hugging Face checkpoint make which parameter of Megatron-core's model, and how it is cut.

Shape suffixes: D hidden size, F feed-forward width.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from workers.train.megatron.shape import PolicyShape

Cut = Literal["whole", "rows", "columns", "gated_rows"]
"""Over tensor-parallel ranks: not at all, along the output, along the input, or along both halves of the output."""


@dataclass(frozen=True, slots=True)
class Unit:
    """One parameter of the uncut model."""

    hf_names: tuple[str, ...]
    hf_shapes: tuple[tuple[int, ...], ...]
    local_names: tuple[str, ...]
    """Its name on the rank that has it: that of the local layers, then that of Transformer Engine's."""
    stage: int
    """Pipeline stage that has it."""
    expert_rank: int | None = None
    """Expert-parallel rank that has it; None where it belongs to no expert."""
    cut: Cut = "whole"
    groups: int = 0
    """Above 0 where it joins queries, keys and values: key and value heads, each after the queries that read it."""
    padded_rows: int = 0
    """Rows of a vocabulary, zeros behind the last token included; 0 where nothing is padded."""
    copy_name: str = ""
    """Name of a second copy on the last stage: the embedding, where it is the head too."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the uncut parameter."""
        first, *rest = self.hf_shapes[0]
        return (self.padded_rows or sum(shape[0] for shape in self.hf_shapes) if rest else first, *rest)

    def join(self, tensors: Sequence[Tensor]) -> Tensor:
        """The uncut parameter from its tensors in the checkpoint."""
        if self.groups:
            grouped = [tensor.view(self.groups, -1, *tensor.shape[1:]) for tensor in tensors]
            return torch.cat(grouped, dim=1).flatten(0, 1)
        if self.padded_rows:
            (tensor,) = tensors
            return torch.nn.functional.pad(tensor, (0, 0, 0, self.padded_rows - len(tensor)))
        return torch.cat(list(tensors)) if len(tensors) > 1 else tensors[0]

    def split(self, whole: Tensor) -> list[Tensor]:
        """The tensors of the checkpoint from the uncut parameter."""
        rows = [shape[0] for shape in self.hf_shapes]
        if self.groups:
            parts = whole.view(self.groups, -1, *whole.shape[1:]).split([n // self.groups for n in rows], dim=1)
            return [part.flatten(0, 1) for part in parts]
        return list(whole[: sum(rows)].split(rows))

    def shard(self, whole: Tensor, rank: int, size: int) -> Tensor:
        """A tensor-parallel rank's part of the uncut parameter."""
        if self.cut == "whole" or size == 1:
            return whole
        if self.cut == "gated_rows":
            return torch.cat([half.chunk(size)[rank] for half in whole.chunk(2)])
        return whole.chunk(size, dim=1 if self.cut == "columns" else 0)[rank]

    def unshard(self, shards: Sequence[Tensor]) -> Tensor:
        """The uncut parameter from the parts of all tensor-parallel ranks."""
        if self.cut == "whole" or len(shards) == 1:
            return shards[0]
        if self.cut == "gated_rows":
            return torch.cat([half for part in (0, 1) for half in (shard.chunk(2)[part] for shard in shards)])
        return torch.cat(list(shards), dim=1 if self.cut == "columns" else 0)


class Correspondence:
    """All units of a policy under one layout, in the order in which weights are read and sent."""

    def __init__(self, shape: PolicyShape, *, padded_vocabulary: int, pipeline_size: int, expert_size: int) -> None:
        self._shape = shape
        self._padded_vocabulary = padded_vocabulary
        self._layers_per_stage = shape.dense.num_hidden_layers // pipeline_size
        self._last_stage = pipeline_size - 1
        self._expert_size = expert_size

    def units(self) -> Iterator[Unit]:
        """Embedding, layers from the first to the last, final norm and, unless it is the embedding, head."""
        dense = self._shape.dense
        yield self._vocabulary("model.embed_tokens.weight", "embedding.word_embeddings.weight", 0)
        for index in range(dense.num_hidden_layers):
            yield from self._layer(index)
        yield Unit(
            ("model.norm.weight",), ((dense.hidden_size,),), ("decoder.final_layernorm.weight",), self._last_stage
        )
        if not dense.tie_word_embeddings:
            yield self._vocabulary("lm_head.weight", "output_layer.weight", self._last_stage)

    def stage_of_layer(self, index: int) -> tuple[int, int]:
        """(stage, number of the layer on it)."""
        return divmod(index, self._layers_per_stage)

    def _vocabulary(self, hf_name: str, local_name: str, stage: int) -> Unit:
        dense, rows = self._shape.dense, self._padded_vocabulary
        shapes = ((dense.vocab_size, dense.hidden_size),)
        copy_name = "output_layer.weight" if dense.tie_word_embeddings else ""
        return Unit((hf_name,), shapes, (local_name,), stage, cut="rows", padded_rows=rows, copy_name=copy_name)

    def _layer(self, index: int) -> Iterator[Unit]:
        dense = self._shape.dense
        d, e, num_heads, num_groups = (
            dense.hidden_size,
            dense.head_dim,
            dense.num_attention_heads,
            dense.num_key_value_heads,
        )
        stage, local = self.stage_of_layer(index)
        hf, here = f"model.layers.{index}", f"decoder.layers.{local}"
        attention, of_layer = f"{here}.self_attention", f"{hf}.self_attn"
        yield Unit(
            (f"{hf}.input_layernorm.weight",),
            ((d,),),
            (f"{here}.input_layernorm.weight", f"{attention}.linear_qkv.layer_norm_weight"),
            stage,
        )
        yield Unit(
            tuple(f"{of_layer}.{name}_proj.weight" for name in "qkv"),
            ((num_heads * e, d), (num_groups * e, d), (num_groups * e, d)),
            (f"{attention}.linear_qkv.weight",),
            stage,
            cut="rows",
            groups=num_groups,
        )
        for name in "qk":
            yield Unit((f"{of_layer}.{name}_norm.weight",), ((e,),), (f"{attention}.{name}_layernorm.weight",), stage)
        yield Unit(
            (f"{of_layer}.o_proj.weight",),
            ((d, num_heads * e),),
            (f"{attention}.linear_proj.weight",),
            stage,
            cut="columns",
        )
        yield Unit(
            (f"{hf}.post_attention_layernorm.weight",),
            ((d,),),
            (f"{here}.pre_mlp_layernorm.weight", f"{here}.mlp.linear_fc1.layer_norm_weight"),
            stage,
        )
        yield from self._feed_forward(f"{hf}.mlp", f"{here}.mlp", stage)

    def _feed_forward(self, hf: str, here: str, stage: int) -> Iterator[Unit]:
        d, mixture = self._shape.dense.hidden_size, self._shape.mixture
        if mixture is None:
            f = self._shape.dense.intermediate_size
            yield Unit(_gate_and_up(hf), ((f, d), (f, d)), (f"{here}.linear_fc1.weight",), stage, cut="gated_rows")
            yield Unit((f"{hf}.down_proj.weight",), ((d, f),), (f"{here}.linear_fc2.weight",), stage, cut="columns")
            return
        yield Unit((f"{hf}.gate.weight",), ((mixture.num_experts, d),), (f"{here}.router.weight",), stage)
        f, per_rank = mixture.intermediate_size, mixture.num_experts // self._expert_size
        for expert in range(mixture.num_experts):
            rank, local = divmod(expert, per_rank)
            inside = f"{hf}.experts.{expert}"
            yield Unit(_gate_and_up(inside), ((f, d), (f, d)), _expert(here, local, "linear_fc1"), stage, rank)
            yield Unit((f"{inside}.down_proj.weight",), ((d, f),), _expert(here, local, "linear_fc2"), stage, rank)


def _gate_and_up(hf: str) -> tuple[str, str]:
    return f"{hf}.gate_proj.weight", f"{hf}.up_proj.weight"


def _expert(here: str, local: int, linear: str) -> tuple[str, str]:
    return f"{here}.experts.local_experts.{local}.{linear}.weight", f"{here}.experts.{linear}.weight{local}"
