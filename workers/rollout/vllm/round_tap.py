"""Hears of every step of vLLM's scheduler and chooses how many tokens the next one drafts.

The scheduler asks for the draft length when it plans a step; that step verifies what the step before drafted, and
drafts so many tokens itself. What a step takes therefore counts for a draft length only where both are the same.
"""

from dataclasses import dataclass, field
from typing import Any

from workers.algo.draft_length import Round
from workers.algo.positions import at_least
from workers.rollout.draft_lengths import DraftLengths, FixedDraftLength
from workers.rollout.engine import EngineLoad
from workers.rollout.statistics import RoundStatistics
from workers.rollout.vllm.lookup_clock import LOOKUP_CLOCK
from workers.rollout.vllm.verification_log import added_name


@dataclass(slots=True)
class PlayedRound:
    """A round of one request in which something was drafted."""

    start: int
    """Response tokens before it."""
    drafted: list[int]
    num_accepted: int
    """Of the drafted tokens, those behind the response's end included."""
    num_kept: int
    """Tokens that became part of the response."""


@dataclass(slots=True)
class _Step:
    """What one step did."""

    num_sequences: int = 0
    context: float = 0.0
    """Tokens that a sequence held before it, the mean."""
    is_pure: bool = True
    """Nothing but rounds: no prompt was read in it."""
    chosen: int = 0
    """Draft length of the drafts made in it; for lookups, whether any were looked for."""
    num_drafted: list[int] = field(default_factory=list)
    num_accepted: list[int] = field(default_factory=list)
    num_lost: int = 0
    """Tokens behind a response's end."""


class RoundTap:
    """One scheduler's; made once, begun anew for each call."""

    def __init__(self, scheduler: Any, *, is_lookup: bool) -> None:
        """is_lookup: whether only a lookup tells if there is a draft."""
        self._scheduler, self._is_lookup = scheduler, is_lookup
        self._update, self._take_drafts = scheduler.update_from_output, scheduler.update_draft_token_ids
        scheduler.update_from_output = self._update_from_output
        if scheduler.num_spec_tokens:
            scheduler.dynamic_sd_lookup = self
            if is_lookup:
                scheduler.update_draft_token_ids = self._update_draft_token_ids
        self.padding_length: int | None = None
        """Where drafts are looked up: so many tokens 0 in the place of each, to measure what verifying them takes."""
        self.begin(FixedDraftLength(0))

    def begin(self, lengths: DraftLengths) -> None:
        """Forget the call before; lengths decides draft lengths and is told of rounds."""
        self._lengths = lengths
        lengths.begin()
        self._step: _Step | None = None
        self._chosen = 0
        self._num_tokens: dict[str, int] = {}
        self.rounds: dict[str, list[PlayedRound]] = {}
        """By the name that a request was added with."""
        self.statistics = RoundStatistics()
        self.load = EngineLoad()

    def __getitem__(self, num_sequences: int) -> int:
        """What the scheduler takes for its table of draft lengths by batch size."""
        lengths = self._lengths
        self._chosen = lengths.choose_lookup(num_sequences) if self._is_lookup else lengths.choose(num_sequences)
        return self._chosen

    def end_step(self, seconds: float) -> None:
        """The step's wall time; tells what decides draft lengths."""
        step, self._step = self._step, None
        lookup_s = LOOKUP_CLOCK.take() if self._is_lookup else 0.0
        if step is None or not step.is_pure or not step.num_sequences:
            return
        number, drafted, lengths = step.num_sequences, max(step.num_drafted, default=0), self._lengths
        predicted_s = lengths.predicted_s(number, drafted, step.context)
        self.statistics.time(number, drafted, seconds, predicted_s)
        is_steady = self._is_lookup or step.chosen == drafted or not predicted_s
        tried, accepted = (at_least(numbers, drafted) for numbers in (step.num_drafted, step.num_accepted))
        seconds = seconds - lookup_s if is_steady else predicted_s
        lengths.observe(Round(number, drafted, step.context, tried, accepted, step.num_lost, seconds))
        if self._is_lookup and step.chosen:
            lengths.observe_lookup(number, lookup_s)

    def _update_from_output(self, planned: Any, output: Any) -> Any:
        # The scheduler cuts them where responses end.
        sampled = {r: len(tokens) for r, tokens in zip(output.req_ids, output.sampled_token_ids or [], strict=False)}
        results = self._update(planned, output)
        kept = {one.request_id: len(one.new_token_ids) for part in results.values() for one in part.outputs}
        running = planned.scheduled_cached_reqs
        context = sum(running.num_computed_tokens) / max(len(running.req_ids), 1)
        self._step = _Step(len(planned.num_scheduled_tokens), context, chosen=self._chosen)
        started = set(running.req_ids)
        for request, num_scheduled in planned.num_scheduled_tokens.items():
            drafted = planned.scheduled_spec_decode_tokens.get(request, [])
            if num_scheduled != 1 + len(drafted) or request not in started:
                self._step.is_pure = False
            self._play(added_name(request), drafted, sampled.get(request, 0), kept.get(request, 0))
        scheduler = self._scheduler
        use = float(scheduler.kv_cache_manager.usage)
        self.load += EngineLoad(1, use, use, len(scheduler.running), len(scheduler.waiting))
        return results

    def _update_draft_token_ids(self, found: Any) -> None:
        """Drafts that were looked up, on their way into the next step, cut to the width that is worth verifying."""
        drafts = found.draft_token_ids
        if self.padding_length is not None:
            drafts = [[0] * self.padding_length for _ in drafts]
        elif longest := max(map(len, drafts), default=0):
            longest = self._lengths.width([len(draft) for draft in drafts])
            drafts = [draft[:longest] for draft in drafts]
        found.draft_token_ids = drafts
        self._take_drafts(found)

    def _play(self, name: str, drafted: list[int], num_sampled: int, num_kept: int) -> None:
        """One request's part of a step."""
        assert self._step is not None
        start = self._num_tokens.get(name, 0)
        self._num_tokens[name] = start + num_kept
        if not drafted or not num_sampled:
            return
        accepted = num_sampled - 1
        self.rounds.setdefault(name, []).append(PlayedRound(start, list(drafted), accepted, num_kept))
        self.statistics.count([len(drafted)], [min(accepted, num_kept)])
        self._step.num_drafted.append(len(drafted))
        self._step.num_accepted.append(accepted)
        self._step.num_lost += num_sampled - num_kept
