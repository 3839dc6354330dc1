"""What drafts get accepted: by position, and together by draft length; both forgotten exponentially."""

from collections.abc import Sequence
from itertools import zip_longest

_MEMORY_SEQUENCES = 4000.0
"""Sequence-rounds that the estimates remember: some steps of a policy that moves."""
_UNTRIED_MEMORY_SEQUENCES = 1500.0
"""The same for positions beyond the drafts of a round."""
_DOUBTED_SEQUENCES = 200.0
"""Sequence-rounds that weigh of the past at most, where it may say little of now."""
_PRIOR_SEQUENCES = 32.0
"""Weight of what the positions before say of a position, in sequence-rounds, for drafts fail at much the same rate at
each."""
_PRIOR_ACCEPTANCE = 0.7
"""Chance expected of a drafted token after accepted ones, where nothing was measured."""
_YIELD_MEMORY_SEQUENCES = 8000.0
_YIELD_PRIOR_SEQUENCES = 400.0
"""Weight of what the positions' chances say of a draft length, in sequence-rounds."""


class AcceptanceEstimate:
    """g_i, the chance that the i-th drafted token is accepted where one was drafted, and t_k, the tokens that a
    sequence gets of a round of draft length k.

    What is accepted behind a response's end is lost. A response ends anywhere in its last round, which so brings
    (t_k - 1) / 2 tokens for nothing, and with h the share of tokens that end a response the tokens that count are

        t_k / (1 + h (t_k - 1) / 2).

    t_k is more than 1 + g_1 + ... + g_k says where the chances were counted in rounds of longer drafts: those end more
    often at a token that is hard to draft, and the next one begins there.
    """

    def __init__(self, max_length: int) -> None:
        self._tried = [0.0] * max_length
        self._accepted = [0.0] * max_length
        self._sequences = [0.0] * (max_length + 1)
        self._tokens = [0.0] * (max_length + 1)
        self._lost = self._loss_at_each_token = 0.0

    def observe(self, rounds: Sequence[tuple[Sequence[int], Sequence[int]]]) -> None:
        """Rounds, the sequences of each with a drafted token at each position, and those of them with it accepted."""
        tried_by_position = zip_longest(*(tried for tried, _ in rounds), fillvalue=0)
        accepted_by_position = zip_longest(*(accepted for _, accepted in rounds), fillvalue=0)
        tried = [*map(sum, tried_by_position)]
        accepted = [*map(sum, accepted_by_position)]
        nothing = [0] * (len(self._tried) - len(tried))
        for i, (new_tried, new_accepted) in enumerate(zip(tried + nothing, accepted + nothing, strict=True)):
            # Of a position that was not tried for some time those before it say more than its own past does.
            memory = _MEMORY_SEQUENCES if new_tried else _UNTRIED_MEMORY_SEQUENCES
            decay = 1 - min(1.0, (new_tried or max(tried, default=0)) / memory)
            self._tried[i] = self._tried[i] * decay + new_tried
            self._accepted[i] = self._accepted[i] * decay + new_accepted

    def doubt(self) -> None:
        """What comes next is to count for more than what was long ago: drafts may have become others since."""
        for i, tried in enumerate(self._tried):
            share = min(_DOUBTED_SEQUENCES / tried, 1.0) if tried else 1.0
            self._tried[i], self._accepted[i] = tried * share, self._accepted[i] * share

    def observe_length(self, num_sequences: int, draft_length: int, num_accepted: int, num_lost: int) -> None:
        """Rounds in which every sequence had a draft of this length: the sequences of all of them together, how many of
        their tokens were accepted, and how many tokens were lost behind a response's end."""
        decay = max(1 - num_sequences / _YIELD_MEMORY_SEQUENCES, 0.0)
        # Of all lengths, for what was found of one long ago is known no better than what the positions say now.
        self._sequences = [sequences * decay for sequences in self._sequences]
        self._tokens = [tokens * decay for tokens in self._tokens]
        self._sequences[draft_length] += num_sequences
        self._tokens[draft_length] += num_sequences + num_accepted
        self._lost = self._lost * decay + num_lost
        tokens = num_sequences + num_accepted
        self._loss_at_each_token = self._loss_at_each_token * decay + tokens * (tokens / num_sequences - 1) / 2

    def chances(self) -> list[float]:
        """g_1 .. g_max.

        g_i = (accepted_i + m g_(i-1) a_(i-1)) / (tried_i + m), with a_(i-1) = min(1, g_(i-1) / g_(i-2)) what was
        accepted there given all before it, and m the prior's weight. It may rise with i where only the surest of looked
        up drafts are that long.
        """
        chances: list[float] = []
        before, rate = 1.0, _PRIOR_ACCEPTANCE
        for tried, accepted in zip(self._tried, self._accepted, strict=True):
            chance = (accepted + _PRIOR_SEQUENCES * before * rate) / (tried + _PRIOR_SEQUENCES)
            rate = min(chance / before, 1.0) if before > 0 else 0.0
            chances.append(chance)
            before = chance
        return chances

    def yields(self) -> list[float]:
        """The tokens that count of rounds of each length from 0 on: what they brought, as far as there were any, else
        by the chances.

        t_k = (tokens_k + m (1 + g_1 + ... + g_k)) / (sequences_k + m), less what is lost.
        """
        yields, by_chances, m = [1.0], 1.0, _YIELD_PRIOR_SEQUENCES
        ending = self._lost / self._loss_at_each_token if self._loss_at_each_token else 0.0
        for length, chance in enumerate(self.chances(), 1):
            by_chances += chance
            tokens = (self._tokens[length] + m * by_chances) / (self._sequences[length] + m)
            yields.append(tokens / (1 + ending * (tokens - 1) / 2))
        return yields
