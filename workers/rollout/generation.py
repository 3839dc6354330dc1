"""One generate() call: rows are filled with completions, decoded round by round and refilled as they finish.

Shape suffixes: R rows, K drafted tokens, J = K + 1, V vocabulary.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from contract.telemetry.metrics import MAX_DRAFT_LENGTH
from workers.algo.acceptance import verify
from workers.rollout.decoder import RotaryTable, policy_forward, rms_norm
from workers.rollout.drafters.drafter import Draft, Drafter
from workers.rollout.engine import Completion, RoundRecord, SamplingParams, SpeculationCounters
from workers.rollout.kv_cache import KvCache
from workers.rollout.packed_weights import PackedPolicy
from workers.rollout.prompts import PromptBlock
from workers.rollout.rows import Rows
from workers.rollout.sampler import Sampler

_SMALLEST_PROBABILITY = 1e-38
"""Floor of recorded probabilities, so that their logarithms stay finite."""


class Generation:
    """State of one call. Prompts are prefilled in blocks of one per row, each once for all its samples."""

    def __init__(
        self,
        policy: PackedPolicy,
        prompts: Sequence[Sequence[int]],
        num_samples: int,
        params: SamplingParams,
        *,
        max_batch_size: int,
        eos_token_ids_E: Tensor,
        drafter: Drafter | None,
        draft_length: int,
        record_rounds_of: Sequence[int],
    ) -> None:
        config, device = policy.config, policy.embedding_VD.device
        self.policy, self.prompts, self.num_samples, self.params = policy, prompts, num_samples, params
        self.max_batch_size = max_batch_size
        self.draft_length = draft_length if drafter else 0
        self.tap_layers = drafter.tap_layers if drafter else ()
        self.sampler = Sampler(params.temperature, params.truncation, torch.Generator(device).manual_seed(params.seed))
        self.num_completions = len(prompts) * num_samples
        num_rows = min(max_batch_size, self.num_completions)
        capacity = max(map(len, prompts)) + params.max_new_tokens + self.draft_length + 1
        self.rotary = RotaryTable.build(capacity, config, device)
        self.rows = Rows(num_rows, capacity, eos_token_ids_E)
        self.cache = KvCache.allocate(
            config.num_hidden_layers,
            num_rows,
            capacity,
            config.num_key_value_heads,
            config.head_dim,
            transpose_keys=self.draft_length > 0,
            device=device,
        )
        self.session = drafter.start(num_rows, capacity, self.sampler) if drafter else None
        self.block: PromptBlock | None = None
        self.num_started = 0
        self.completions: list[Completion | None] = [None] * self.num_completions
        self.rounds: dict[int, list[RoundRecord]] = {completion: [] for completion in record_rounds_of}
        self.accepted_histogram_J = torch.zeros(self.draft_length + 1, dtype=torch.int64, device=device)

    def run(self) -> tuple[list[Completion], SpeculationCounters]:
        """Generate everything."""
        self._refill(list(range(min(self.max_batch_size, self.num_completions))))
        while self.rows.num_live:
            self._round()
        return [completion for completion in self.completions if completion is not None], self._counters()

    def _round(self) -> None:
        """Draft, verify, append, and refill the rows that finished."""
        rows, lengths_R = self.rows, self.rows.lengths_R
        draft = self.session.draft(rows, self.draft_length) if self.session else None
        token_ids_RJ = rows.token_ids_RT.gather(1, (lengths_R - 1).unsqueeze(1))
        if draft is not None:
            token_ids_RJ = torch.cat([token_ids_RJ, draft.token_ids_RK], 1)
        offsets_J = torch.arange(-1, self.draft_length, device=lengths_R.device)
        positions_RJ = lengths_R.unsqueeze(1) + offsets_J
        span = int(lengths_R.max()) + self.draft_length
        x, features = policy_forward(
            self.policy, token_ids_RJ, positions_RJ, span, self.cache, self.rotary, self.tap_layers
        )
        logits = self.policy.head(rms_norm(x, self.policy.config.rms_norm_eps))
        self._conclude(draft, self.sampler.probs(logits), positions_RJ, features)

    def _conclude(self, draft: Draft | None, probs_RJV: Tensor, positions_RJ: Tensor, features: Tensor | None) -> None:
        """Decide what is emitted, and tell the rows and the drafter."""
        if draft is None:
            new_RJ = self.sampler.draw(probs_RJV)
            num_accepted_R = torch.zeros(len(new_RJ), dtype=torch.int64, device=new_RJ.device)
        else:
            num_accepted_R, next_R = verify(draft.token_ids_RK, draft.probs_RKV, probs_RJV, self.sampler.generator)
            new_RJ = torch.cat([draft.token_ids_RK, next_R.unsqueeze(1)], 1)
            new_RJ.scatter_(1, num_accepted_R.unsqueeze(1), next_R.unsqueeze(1))
        logprobs_RJ = probs_RJV.gather(2, new_RJ.unsqueeze(2)).squeeze(2).log()
        live = slice(self.rows.num_live)
        num_kept_R, is_finished_R = self.rows.append(live, new_RJ, logprobs_RJ, num_accepted_R + 1)
        if draft is not None:
            num_accepted_kept_R = torch.minimum(num_accepted_R, num_kept_R)
            self.accepted_histogram_J += torch.bincount(num_accepted_kept_R, minlength=self.draft_length + 1)
        if self.rounds:
            self._record(draft, probs_RJV, new_RJ, num_accepted_R, num_kept_R)
        if self.session and features is not None:
            self.session.observe(features, positions_RJ, num_accepted_R)
        if bool(is_finished_R.any()):
            self._refill(self._harvest(is_finished_R.nonzero().flatten().tolist()))

    def _refill(self, free: list[int]) -> None:
        """Start pending completions in free rows, until none is pending or none is free; then close the gaps.

        A completion whose first token ends it leaves its row free again.
        """
        while free and self.num_started < self.num_completions:
            block = self._block_of(self.num_started // self.num_samples)
            end_of_block = (block.first + len(block.lengths_P)) * self.num_samples
            count = min(len(free), min(end_of_block, self.num_completions) - self.num_started)
            started = list(range(self.num_started, self.num_started + count))
            self.num_started += count
            free = sorted(free[count:] + self._start(free[:count], started, block))
        for row in sorted(free, reverse=True):
            self._close_gap(row)

    def _start(self, free: list[int], started: list[int], block: PromptBlock) -> list[int]:
        """Put completions into rows and draw their first tokens; returns the rows that this finished already."""
        rows = torch.tensor(free, device=block.lengths_P.device)
        prompts = torch.tensor([c // self.num_samples - block.first for c in started], device=rows.device)
        lengths_R = block.lengths_P[prompts]
        self.cache.copy_rows(rows, block.cache, prompts, block.token_ids_PT.shape[1])
        self.rows.place(rows, started, block.token_ids_PT[prompts], lengths_R, self.params.max_new_tokens)
        probs_RV = block.next_probs_PV[prompts]
        first_R1 = self.sampler.draw(probs_RV).unsqueeze(1)
        appended = self.rows.append(rows, first_R1, probs_RV.gather(1, first_R1).log(), torch.ones_like(rows))
        if self.session:
            self.session.admit(rows, prompts)
        for completion, token in zip(started, first_R1.flatten().tolist(), strict=True):
            if completion in self.rounds:
                self.rounds[completion].append(RoundRecord([], 0, token, [], []))
        return self._harvest(rows[appended.is_finished_R].tolist())

    def _block_of(self, prompt: int) -> PromptBlock:
        """The prefilled block that holds a prompt; prompts are asked for in order."""
        if self.block is None or prompt >= self.block.first + len(self.block.lengths_P):
            prompts = self.prompts[prompt : prompt + self.max_batch_size]
            self.block = PromptBlock.run(self.policy, prompts, prompt, self.sampler, self.rotary, self.tap_layers)
            if self.session:
                self.session.prefill(self.block)
        return self.block

    def _harvest(self, rows: list[int]) -> list[int]:
        """Turn finished rows into completions; returns the rows, which are free now."""
        for row in rows:
            index = self.rows.completions[row]
            prompt = index // self.num_samples
            token_ids, logprobs = self.rows.response(row, len(self.prompts[prompt]))
            is_truncated = not self.rows.is_eos(token_ids[-1])
            self.completions[index] = Completion(prompt, token_ids, logprobs, is_truncated, self.rounds.get(index, []))
        return rows

    def _close_gap(self, row: int) -> None:
        last = self.rows.num_live - 1
        if row != last:
            self.cache.move_row(last, row)
            if self.session:
                self.session.move_row(last, row)
        self.rows.drop_last(row)

    def _record(
        self, draft: Draft | None, probs_RJV: Tensor, new_RJ: Tensor, num_accepted_R: Tensor, num_kept_R: Tensor
    ) -> None:
        """Keep this round of the rows whose completions were asked for."""
        for row, completion in enumerate(self.rows.completions):
            if completion not in self.rounds:
                continue
            num_accepted, num_kept = int(num_accepted_R[row]), int(num_kept_R[row])
            emitted = int(new_RJ[row, num_accepted]) if num_kept > num_accepted else None
            drafted, q, p = [], [], []
            if draft is not None:
                drafted = draft.token_ids_RK[row].tolist()
                p = _log_probs(probs_RJV[row, :-1], draft.token_ids_RK[row])
                q = (
                    _log_probs(draft.probs_RKV[row], draft.token_ids_RK[row])
                    if draft.probs_RKV is not None
                    else [0.0] * len(p)
                )
            self.rounds[completion].append(RoundRecord(drafted, min(num_accepted, num_kept), emitted, q, p))

    def _counters(self) -> SpeculationCounters:
        """Counters of the whole call."""
        if not self.draft_length:
            return SpeculationCounters()
        histogram = self.accepted_histogram_J.tolist()
        num_drafts = sum(histogram)
        at_position = [sum(histogram[i + 1 :]) for i in range(self.draft_length)]
        return SpeculationCounters(
            num_drafts,
            num_drafts * self.draft_length,
            sum(at_position),
            at_position + [0] * (MAX_DRAFT_LENGTH - self.draft_length),
        )


def _log_probs(probs_KV: Tensor, token_ids_K: Tensor) -> list[float]:
    chosen = probs_KV.gather(1, token_ids_K.unsqueeze(1)).flatten()
    return chosen.clamp_min(_SMALLEST_PROBABILITY).log().tolist()
