"""Drafting with the EAGLE-3 head (workers.model.eagle3).

After a round the head reads the policy's features of every token that was just verified, and from the last accepted one
drafts on with its own outputs. What it wrote for rejected tokens lies beyond the row's length and is overwritten.

Shape suffixes: R rows, J staged positions, K drafted tokens, D hidden size, F features, V vocabulary.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from workers.rollout.decoder import Placement, RotaryTable, attend, causal_bias, finish_layer, project, rms_norm
from workers.rollout.drafters.drafter import Draft
from workers.rollout.kv_cache import KvCache
from workers.rollout.packed_weights import PackedDraft
from workers.rollout.prompts import PromptBlock
from workers.rollout.rows import Rows
from workers.rollout.sampler import Sampler


class Eagle3Drafter:
    """The head's packed weights."""

    def __init__(self, head: PackedDraft) -> None:
        self.head = head

    @property
    def tap_layers(self) -> tuple[int, ...]:
        return self.head.config.tap_layers

    def start(self, num_rows: int, capacity: int, sampler: Sampler) -> "Eagle3Session":
        return Eagle3Session(self.head, num_rows, capacity, sampler)


class Eagle3Session:
    """The head's cache, and for each row the features it has not read yet."""

    def __init__(self, head: PackedDraft, num_rows: int, capacity: int, sampler: Sampler) -> None:
        self.head, self.sampler, self.capacity = head, sampler, capacity
        self.config = head.config.policy
        self.eps = self.config.rms_norm_eps
        device = head.normed_embedding_VD.device
        self.rotary = RotaryTable.build(capacity, self.config, device)
        self.cache = self._allocate(num_rows, capacity)
        self.staged_RJD = torch.zeros(num_rows, 1, self.config.hidden_size, dtype=head.dtype, device=device)
        self.positions_RJ = torch.zeros(num_rows, 1, dtype=torch.int64, device=device)
        self.last_R = torch.zeros(num_rows, dtype=torch.int64, device=device)
        """Index of each row's last accepted token among the staged ones."""

    def prefill(self, block: PromptBlock) -> None:
        """Write the head's keys and values for all positions whose next token the prompt holds."""
        assert block.features_PTF is not None
        num_prompts, width = block.token_ids_PT.shape
        self.block = block
        self.block_fused_PTD = self.head.fuse(block.features_PTF)
        self.block_cache = self._allocate(num_prompts, width)
        positions_PT = torch.arange(width, device=block.token_ids_PT.device).expand(num_prompts, width)
        placement = Placement.of(positions_PT, self.rotary)
        _, k, v = self._project(self.block_fused_PTD, block.token_ids_PT.roll(-1, 1), placement)
        self.block_cache.write(0, placement.positions_RN, placement.rows_R1, k, v)

    def admit(self, rows: Tensor, prompts: Tensor) -> None:
        """Stage the features of each prompt's last token."""
        last_R = self.block.lengths_P[prompts] - 1
        self.cache.copy_rows(rows, self.block_cache, prompts, self.block.token_ids_PT.shape[1])
        num_staged = self.staged_RJD.shape[1]
        self.staged_RJD[rows, 0] = self.block_fused_PTD[prompts, last_R]
        self.positions_RJ[rows] = last_R.unsqueeze(1) + torch.arange(num_staged, device=rows.device)
        self.last_R[rows] = 0

    def draft(self, rows: Rows, draft_length: int) -> Draft:
        """Draw draft_length tokens one after the other."""
        num_rows = rows.num_live
        positions_RK = rows.lengths_R.unsqueeze(1) + torch.arange(-2, draft_length - 2, device=rows.lengths_R.device)
        span = int(rows.lengths_R.max()) + draft_length - 2
        placement = Placement.of(positions_RK, self.rotary)
        bias_R1KS = causal_bias(positions_RK, span, num_groups=1)
        hidden, q = self._read_staged(rows)
        token_ids: list[Tensor] = []
        probs: list[Tensor] = []
        for step in range(draft_length):
            if step > 0:
                column = placement.column(step)
                q, k, v = self._project(hidden, token_ids[-1].unsqueeze(1), column)
                self.cache.write(0, column.positions_RN, column.rows_R1, k, v)
            mixed = attend(q, bias_R1KS[:, :, step : step + 1], self.cache, 0)
            hidden = finish_layer(self.head.layer, hidden, mixed, self.eps)
            logits_RV = self.head.head(rms_norm(hidden, self.eps)).view(num_rows, -1)
            probs.append(self.sampler.probs(logits_RV))
            token_ids.append(self.sampler.draw(probs[-1]))
        return Draft(torch.stack(token_ids, 1), torch.stack(probs, 1))

    def observe(self, features_RJF: Tensor, positions_RJ: Tensor, num_accepted_R: Tensor) -> None:
        """Stage what the policy just computed."""
        self.staged_RJD, self.positions_RJ, self.last_R = self.head.fuse(features_RJF), positions_RJ, num_accepted_R

    def move_row(self, source: int, target: int) -> None:
        self.cache.move_row(source, target)
        for tensor in (self.staged_RJD, self.positions_RJ, self.last_R):
            tensor[target] = tensor[source]

    def _read_staged(self, rows: Rows) -> tuple[Tensor, Tensor]:
        """Write keys and values of the staged positions; feature and query of each row's last accepted one."""
        num_rows = rows.num_live
        fused_RJD, positions_RJ = self.staged_RJD[:num_rows], self.positions_RJ[:num_rows]
        placement = Placement.of(positions_RJ, self.rotary)
        next_ids_RJ = rows.token_ids_RT.gather(1, (positions_RJ + 1).clamp_max(self.capacity - 1))
        q, k, v = self._project(fused_RJD, next_ids_RJ, placement)
        self.cache.write(0, placement.positions_RN, placement.rows_R1, k, v)
        at = (placement.rows_R1, self.last_R[:num_rows].unsqueeze(1))
        return fused_RJD[at], q[at]

    def _project(self, hidden: Tensor, next_ids: Tensor, placement: Placement) -> tuple[Tensor, ...]:
        embedded = F.embedding(next_ids, self.head.normed_embedding_VD)
        x = torch.cat([embedded, rms_norm(hidden, self.eps)], dim=-1)
        return project(self.head.layer, x, self.config, placement)

    def _allocate(self, num_rows: int, capacity: int) -> KvCache:
        # One new token a step: nothing to gain from transposed keys.
        return KvCache.allocate(
            1,
            num_rows,
            capacity,
            self.config.num_key_value_heads,
            self.config.head_dim,
            transpose_keys=False,
            device=self.head.normed_embedding_VD.device,
        )
