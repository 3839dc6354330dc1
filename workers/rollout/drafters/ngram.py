"""Prompt lookup: what followed the newest tokens where they last stood in the row (Saxena 2023, prompt lookup).

Nothing is learned and nothing drawn. Each row knows where each of its runs of tokens last ended, by a table that grows
with it; samples of a group share the table of their prompt.
"""

from collections.abc import Sequence

from torch import Tensor

from workers.rollout.drafters.drafter import Draft, Verified
from workers.rollout.drafters.lookup import Proposals
from workers.rollout.prompts import PromptBlock
from workers.rollout.rows import Row
from workers.rollout.sampler import Sampler

Runs = dict[tuple[int, ...], int]
"""Where each run of tokens last ended: the index of the token that followed it."""


class NgramDrafter:
    """Follows the longest match of a row's newest tokens."""

    tap_layers: tuple[int, ...] = ()

    def __init__(self, min_match_tokens: int, max_match_tokens: int) -> None:
        if not 1 <= min_match_tokens <= max_match_tokens:
            raise ValueError(
                f"min_match_tokens = {min_match_tokens}, max_match_tokens = {max_match_tokens}: "
                "must be at least 1, and the first not above the second"
            )
        self.lengths = range(min_match_tokens, max_match_tokens + 1)

    def start(self, num_rows: int, capacity: int, sampler: Sampler) -> "NgramSession":
        return NgramSession(self.lengths, num_rows)


class NgramSession:
    """The tables of one call's rows."""

    def __init__(self, lengths: range, num_rows: int) -> None:
        self._lengths = lengths
        """Of matches."""
        self._of_prompt: dict[int, Runs] = {}
        self._prompts: Sequence[Sequence[int]] = ()
        self._tables = [_Table({}, ())] * num_rows

    def prefill(self, block: PromptBlock) -> None:
        self._prompts, self._of_prompt = block.prompts, {}

    def admit(self, rows: Tensor, prompts: Tensor, first_tokens: Tensor) -> None:
        for row, prompt in zip(rows.tolist(), prompts.tolist(), strict=True):
            # Filled when something is first looked up, which may be never.
            runs = self._of_prompt.setdefault(prompt, {})
            self._tables[row] = _Table(runs, self._prompts[prompt])

    def draft(self, rows: Sequence[Row], start_R: Tensor, draft_length: int) -> Draft | None:
        tables, lengths = self._tables, self._lengths
        proposals = [tables[index].propose(row.token_ids, lengths, draft_length) for index, row in enumerate(rows)]
        return Proposals.of(proposals).to_draft(start_R.device)

    def observe(self, verified: Verified) -> None:
        """The rows hold what was emitted."""

    def retire(self, row: int, token_ids: list[int]) -> None:
        """Other rows do not look here."""

    def move_row(self, source: int, target: int) -> None:
        self._tables[target] = self._tables[source]


class _Table:
    """Where runs last ended in a row."""

    __slots__ = ("_num_known", "_of_prompt", "_prompt", "_runs")

    def __init__(self, of_prompt: Runs, prompt: Sequence[int]) -> None:
        """of_prompt: runs of the prompt, shared; filled here where no other row has done so."""
        self._of_prompt, self._prompt = of_prompt, prompt
        self._runs: Runs = {}
        self._num_known = max(len(prompt) - 1, 0)
        """Runs that end before or with so many tokens are known."""

    def grow(self, token_ids: Sequence[int], lengths: range) -> Runs:
        """Take note of every run that something follows; those of this table alone."""
        if not self._of_prompt:
            _note(self._of_prompt, self._prompt, 1, lengths)
        _note(self._runs, token_ids, self._num_known + 1, lengths)
        self._num_known = len(token_ids) - 1
        return self._runs

    def propose(self, token_ids: list[int], lengths: range, max_tokens: int) -> list[int]:
        """What followed the last earlier place of the longest match; goes round where it reaches the row's end."""
        runs = self.grow(token_ids, lengths)
        followed_at = None
        for length in lengths:
            newest = tuple(token_ids[-length:])
            found = runs.get(newest) or self._of_prompt.get(newest)
            if found is None:
                break  # nor is there a longer one
            followed_at = found
        if followed_at is None:
            return []
        proposal = token_ids[followed_at : followed_at + max_tokens]
        while len(proposal) < max_tokens:
            proposal += proposal[: max_tokens - len(proposal)]
        return proposal


def _note(runs: Runs, token_ids: Sequence[int], first_end: int, lengths: range) -> None:
    """Runs of these lengths that end with so many tokens or more and are followed by another."""
    for end in range(first_end, len(token_ids)):
        for length in lengths:
            if length <= end:
                runs[tuple(token_ids[end - length : end])] = end
