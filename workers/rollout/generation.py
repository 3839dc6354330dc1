"""One generate() call: rows are filled with completions, decoded round by round and refilled as they finish.

Shape suffixes: R rows, K drafted tokens, J = K + 1, V vocabulary.
"""

import time
from collections.abc import Sequence, Set
from dataclasses import dataclass

import torch
from torch import Tensor

from workers.algo.acceptance import Randomness, verify
from workers.algo.draft_length import Round
from workers.algo.positions import at_least
from workers.algo.round_costs import verified, whole
from workers.rollout.decoder import policy_forward
from workers.rollout.draft_lengths import DraftLengths
from workers.rollout.drafters.drafter import Draft, Drafter, DraftSession, Verified
from workers.rollout.engine import Completion, SamplingParams
from workers.rollout.operations import Emitted, KvCache, Operations, Packing, Told
from workers.rollout.packed_weights import PackedPolicy
from workers.rollout.prompts import PromptBlock
from workers.rollout.round_log import RoundLog, draft_lengths
from workers.rollout.rows import Row
from workers.rollout.sampler import Sampler
from workers.rollout.statistics import RoundStatistics


@dataclass(frozen=True, slots=True)
class PolicyRound:
    """The policy's part of a round, as a region (workers.rollout.operations): the pass, and what it decides."""

    policy: PackedPolicy
    cache: KvCache
    sampler: Sampler
    tap_layers: tuple[int, ...]
    span: int

    def run(
        self,
        token_ids_RJ: Tensor,
        start_R: Tensor,
        randomness: Randomness,
        draft_probs_RKV: Tensor | None,
        num_drafted_R: Tensor | None,
    ) -> tuple[Tensor | None, ...]:
        """What is emitted, the policy's probabilities and its features, from each row's last token and draft.

        Where operations pack and rows have drafted different numbers of tokens, the probabilities are packed.
        """
        packing = None
        if num_drafted_R is not None and self.policy.operations.tile:
            packing = Packing.of(num_drafted_R + 1)
        normed, features = policy_forward(
            self.policy, token_ids_RJ, start_R, self.span, self.cache, self.tap_layers, packing
        )
        probs_RJV = self.sampler.probs(self.policy.head(normed))
        emitted = self._emit(token_ids_RJ[:, 1:], draft_probs_RKV, probs_RJV, randomness, num_drafted_R, packing)
        return (*emitted, probs_RJV, features)

    def _emit(
        self,
        drafted_RK: Tensor,
        draft_probs_RKV: Tensor | None,
        probs_RJV: Tensor,
        randomness: Randomness,
        num_drafted_R: Tensor | None,
        packing: Packing | None,
    ) -> Emitted:
        """Draw or verify."""
        if drafted_RK.shape[1] == 0:
            new_RJ = self.sampler.draw(probs_RJV, randomness)
            num_accepted_R = torch.zeros_like(new_RJ[:, 0])
        else:
            proposed = (drafted_RK, draft_probs_RKV, probs_RJV, randomness, num_drafted_R)
            if (emitted := self.policy.operations.verify(*proposed, packing)) is not None:
                return emitted
            if packing is not None:
                probs_RJV = packing.unpacked(probs_RJV, drafted_RK.shape[1] + 1)
            num_accepted_R, next_R = verify(drafted_RK, draft_probs_RKV, probs_RJV, randomness, num_drafted_R)
            new_RJ = torch.cat([drafted_RK, next_R.unsqueeze(1)], 1)
            new_RJ.scatter_(1, num_accepted_R.unsqueeze(1), next_R.unsqueeze(1))
        return Emitted(num_accepted_R, new_RJ, probs_RJV.gather(2, new_RJ.unsqueeze(2)).squeeze(2).log())


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
        eos_token_ids: Set[int],
        drafter: Drafter | None,
        draft_length: DraftLengths,
        is_lookup: bool,
        log: RoundLog,
    ) -> None:
        config, device = policy.config, policy.embedding_VD.device
        self.policy, self.prompts, self.num_samples, self.params = policy, prompts, num_samples, params
        self.eos_token_ids, self.log = eos_token_ids, log
        self.draft_length, self.is_lookup = draft_length, is_lookup
        self.max_batch_size = max_batch_size
        self.tap_layers = drafter.tap_layers if drafter else ()
        generator = torch.Generator(device).manual_seed(params.seed)
        self.sampler = Sampler(params.temperature, params.truncation, generator, policy.operations)
        self.num_completions = len(prompts) * num_samples
        num_rows = min(max_batch_size, self.num_completions)
        longest_draft = draft_length.max_length if drafter else 0
        capacity = max(map(len, prompts)) + params.max_new_tokens + longest_draft + 1
        self.cache = policy.operations.keep_cache(
            "policy", config, config.num_hidden_layers, num_rows, capacity, is_verified=longest_draft > 0
        )
        self.session = drafter.start(num_rows, capacity, self.sampler) if drafter else None
        self.rows: list[Row] = []
        self.start_R = torch.zeros(num_rows, dtype=torch.int64, device=device)
        """Position of each row's last token, which the policy has not read yet."""
        self.last_R = torch.zeros(num_rows, dtype=torch.int64, device=device)
        """That token."""
        self.block: PromptBlock | None = None
        self.num_started = 0
        self.completions: list[Completion | None] = [None] * self.num_completions
        self.context = 0.0
        """Mean length of the rows when the round began."""
        self.statistics = RoundStatistics()
        self.plain_rounds: list[tuple[int, float, float, bool]] = []
        """Without a draft, not accounted for yet: rows, their mean length, seconds, whether those are typical."""

    def run(self, max_rounds: int | None = None) -> list[Completion]:
        """Generate everything, or what is complete after so many rounds."""
        self.draft_length.begin()
        self._refill(list(range(min(self.max_batch_size, self.num_completions))))
        while self.rows and max_rounds != 0:
            self._round()
            max_rounds = None if max_rounds is None else max_rounds - 1
        self._account_plain_rounds()
        return [completion for completion in self.completions if completion is not None]

    def _round(self) -> None:
        """Draft, verify, append; then refill the rows that finished."""
        began, num_first_runs = time.perf_counter(), Operations.num_first_runs
        self.context = sum(len(row.token_ids) for row in self.rows) / len(self.rows)
        draft, lookup_s = self._draft()
        emitted, probs_RJV, features = self._verify(draft)
        num_new_R = emitted.num_accepted_R + 1
        if self.session:
            self.session.observe(Verified(self.start_R, emitted.token_ids_RJ, num_new_R, features))
        next_R = emitted.token_ids_RJ.gather(1, emitted.num_accepted_R.unsqueeze(1)).squeeze(1)
        self.start_R, self.last_R = self.start_R + num_new_R, next_R
        told = emitted.tell()
        finished, num_kept = self._append(draft, probs_RJV, told)
        is_typical = Operations.num_first_runs == num_first_runs
        self._account(draft, told.num_accepted, num_kept, lookup_s, time.perf_counter() - began, is_typical)
        if finished:
            self._refill(self._harvest(finished))

    def _draft(self) -> tuple[Draft | None, float | None]:
        """The round's draft, and how long it was looked for; None where it was not."""
        if self.session is None or 0 < len(self.plain_rounds) < self.draft_length.stride:
            return None, None
        self._account_plain_rounds()
        if self.is_lookup:
            return self._look_up(self.session)
        length = self.draft_length.choose(len(self.rows))
        return (self.session.draft(self.rows, self.start_R, length) if length else None), None

    def _look_up(self, session: DraftSession) -> tuple[Draft | None, float | None]:
        """Cut to the width that is worth verifying."""
        if not (length := self.draft_length.choose_lookup(len(self.rows))):
            return None, None
        began = time.perf_counter()
        draft = session.draft(self.rows, self.start_R, length)
        if draft is not None:
            width = self.draft_length.width(draft_lengths(draft))
            draft = _cut(draft, width) if width else None
        return draft, time.perf_counter() - began

    def _verify(self, draft: Draft | None) -> tuple[Emitted, Tensor, Tensor | None]:
        """What the round emits, the policy's probabilities, which hold until the next round, and its features."""
        operations, token_ids_RJ = self.policy.operations, self.last_R.unsqueeze(1)
        if draft is not None:
            token_ids_RJ = torch.cat([token_ids_RJ, draft.token_ids_RK], 1)
        num_rows, num_new = token_ids_RJ.shape
        span = operations.round_span(max(len(row.token_ids) for row in self.rows) + num_new - 1)
        randomness = operations.randomness(num_rows, num_new, self.sampler.generator)
        proposed = (None, None) if draft is None else (draft.probs_RKV, draft.num_drafted_R)
        *emitted, probs_RJV, features = operations.region(
            "round",
            PolicyRound(self.policy, self.cache, self.sampler, self.tap_layers, span).run,
            (token_ids_RJ, self.start_R, randomness, *proposed),
            (span, self.sampler.settings, self.tap_layers),
        )
        if operations.is_static:
            # The drafter keeps these beyond the next round.
            emitted = [tensor.clone() for tensor in emitted]
            features = None if features is None else features.clone()
        return Emitted(*emitted), probs_RJV, features

    def _append(self, draft: Draft | None, probs_RJV: Tensor, told: Told) -> tuple[list[int], list[int]]:
        """Add what was emitted to the rows; those that are complete, and how many tokens were added to each."""
        finished, num_kept = [], []
        for index, (row, accepted) in enumerate(zip(self.rows, told.num_accepted, strict=True)):
            tokens = told.token_ids[index][: accepted + 1]
            kept, is_finished = row.append(tokens, told.logprobs[index][: accepted + 1], self.eos_token_ids)
            num_kept.append(kept)
            if is_finished:
                finished.append(index)
        self.log.add(self.rows, draft, probs_RJV, told.token_ids, told.num_accepted, num_kept)
        return finished, num_kept

    def _account(
        self,
        draft: Draft | None,
        num_accepted: list[int],
        num_kept: list[int],
        lookup_s: float | None,
        seconds: float,
        is_typical: bool,
    ) -> None:
        """Count what the round did, and tell what decides the draft length unless the round took time for later ones.

        That hears of all that was accepted, also behind a response's end, for how good a draft is does not depend on
        it, and of how much was lost there.
        """
        if self.session is None:
            return
        policy, num_rows, context = self.draft_length, len(num_kept), self.context
        if draft is None and lookup_s is None:
            self.plain_rounds.append((num_rows, context, seconds, is_typical))
            return
        num_drafted = draft_lengths(draft) if draft is not None else []
        width = max(num_drafted, default=0)
        tile, drafted, length = self.policy.operations.tile, width, float(width)
        if tile:
            drafted = whole(sum(num_drafted) / num_rows)
            length = verified(num_rows + sum(num_drafted), num_rows, tile)
        if width:
            self.statistics.count(num_drafted, [min(pair) for pair in zip(num_accepted, num_kept, strict=True)])
        self.statistics.time(num_rows, drafted, seconds, policy.predicted_s(num_rows, length, context))
        if not is_typical:
            return
        tried, accepted = (at_least(num_drafted, width), at_least(num_accepted, width)) if width else ([], [])
        num_lost = sum(num_accepted) + num_rows - sum(num_kept)
        policy.observe(Round(num_rows, length, context, tried, accepted, num_lost, seconds - (lookup_s or 0.0)))
        if lookup_s is not None:
            policy.observe_lookup(num_rows, lookup_s)

    def _account_plain_rounds(self) -> None:
        """The same, for those without a draft and without a lookup."""
        policy, rounds = self.draft_length, self.plain_rounds
        for num_rows, context, seconds, is_typical in rounds:
            self.statistics.time(num_rows, 0, seconds, policy.predicted_s(num_rows, 0, context))
            if is_typical:
                policy.observe(Round(num_rows, 0, context, (), (), 0, seconds))
        rounds.clear()

    def _refill(self, free: list[int]) -> None:
        """Start pending completions in free rows, until none is pending or none is free; then close the gaps.

        A completion whose first token ends it leaves its row free again.
        """
        while free and self.num_started < self.num_completions:
            block = self._block_of(self.num_started // self.num_samples)
            end_of_block = (block.first + len(block.prompts)) * self.num_samples
            count = min(len(free), min(end_of_block, self.num_completions) - self.num_started)
            started = list(range(self.num_started, self.num_started + count))
            self.num_started += count
            free = sorted(free[count:] + self._start(free[:count], started, block))
        for row in sorted(free, reverse=True):
            self._close_gap(row)

    def _start(self, free: list[int], started: list[int], block: PromptBlock) -> list[int]:
        """Put completions into rows and draw their first tokens; returns the rows that this finished already."""
        device = block.lengths_P.device
        rows = torch.tensor(free, device=device)
        prompts = torch.tensor([c // self.num_samples - block.first for c in started], device=device)
        self.cache.copy_rows(rows, block.cache, prompts, block.token_ids_PT.shape[1])
        probs_RV = block.next_probs_PV[prompts]
        first_R = self.sampler.draw(probs_RV)
        self.start_R[rows], self.last_R[rows] = block.lengths_P[prompts], first_R
        if self.session:
            self.session.admit(rows, prompts, first_R)
        logprobs = probs_RV.gather(1, first_R.unsqueeze(1)).log().flatten().tolist()
        finished = []
        for index, completion, token, logprob in zip(free, started, first_R.tolist(), logprobs, strict=True):
            prompt = self.prompts[completion // self.num_samples]
            row = Row(completion, list(prompt), len(prompt), len(prompt) + self.params.max_new_tokens)
            self.rows[index : index + 1] = [row]
            self.log.first_token(completion, token)
            if row.append([token], [logprob], self.eos_token_ids)[1]:
                finished.append(index)
        return self._harvest(finished)

    def _block_of(self, prompt: int) -> PromptBlock:
        """The prefilled block that holds a prompt; prompts are asked for in order."""
        if self.block is None or prompt >= self.block.first + len(self.block.prompts):
            prompts = self.prompts[prompt : prompt + self.max_batch_size]
            self.block = PromptBlock.run(self.policy, prompts, prompt, self.sampler, self.tap_layers)
            if self.session:
                self.session.prefill(self.block)
        return self.block

    def _harvest(self, rows: list[int]) -> list[int]:
        """Turn finished rows into completions; returns the rows, which are free now."""
        for index in rows:
            row = self.rows[index]
            response = row.response
            is_truncated = response[-1] not in self.eos_token_ids
            records = self.log.records.get(row.completion, [])
            self.completions[row.completion] = Completion(
                row.completion // self.num_samples, response, row.logprobs, is_truncated, records
            )
            if self.session:
                self.session.retire(index, response)
        return rows

    def _close_gap(self, index: int) -> None:
        last = len(self.rows) - 1
        if index != last:
            self.cache.move_row(last, index)
            self.rows[index] = self.rows[last]
            self.start_R[index], self.last_R[index] = self.start_R[last], self.last_R[last]
            if self.session:
                self.session.move_row(last, index)
        self.rows.pop()
        self.start_R, self.last_R = self.start_R[:last], self.last_R[:last]


def _cut(draft: Draft, width: int) -> Draft:
    """Its first tokens only."""
    num_drafted_R = None if draft.num_drafted_R is None else draft.num_drafted_R.clamp_max(width)
    probs_RKV = None if draft.probs_RKV is None else draft.probs_RKV[:, :width]
    return Draft(draft.token_ids_RK[:, :width], probs_RKV, num_drafted_R)
