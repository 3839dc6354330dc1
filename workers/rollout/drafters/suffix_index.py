"""Counts of every run of tokens in a set of sequences, in linear space: an online suffix automaton.

A state stands for runs that end at the same places; its link leads to the longest shorter run at its end that ends at
more places (Blumer et al. 1985, "The smallest automaton recognizing the subwords of a text"; for several texts Blumer
et al. 1987, "Complete inverted files for efficient text retrieval and analysis"). Texts may grow in any order, and may
share their beginnings.

workers.rollout.native.suffix_index is the same, compiled, for machines that can compile it.
"""

from collections.abc import Sequence

from workers.rollout.drafters.lookup import Proposals, Rule

ROOT = 0
"""State of the empty run, where a text begins."""

_PRIOR = 0.5
"""Continuations never seen, as if so many had been: one that was seen once is then expected with 2/3. On responses of
the shipped example what was expected with 0.6 to 0.7 came true 65 times in a hundred, with 0.8 to 0.9 84 times, with
more 94 times; below 0.5 the most frequent of several is overrated (0.4: 23)."""


class SuffixIndex:
    """Grows by a token at a time in amortised constant time, plus the length of the chain of links for the counts."""

    __slots__ = ("_count", "_length", "_link", "_next")

    def __init__(self) -> None:
        self._next: list[dict[int, int]] = [{}]
        self._link = [-1]
        self._length = [0]
        """Of the state's longest run."""
        self._count = [0]
        """Places at which the state's runs end."""

    @property
    def num_states(self) -> int:
        """What its memory is proportional to: at most twice the tokens, 0.4 KB a token."""
        return len(self._next)

    def copy(self) -> "SuffixIndex":
        """One that grows on its own; states are the same."""
        twin = SuffixIndex()
        twin._next = [dict(followers) for followers in self._next]
        twin._link, twin._length, twin._count = self._link[:], self._length[:], self._count[:]
        return twin

    def extend(self, state: int, token_ids: Sequence[int]) -> int:
        """A text that stands at this state goes on with tokens; returns its new state, whose longest run is all of the
        text."""
        links, counts = self._link, self._count
        for token_id in token_ids:
            known = self._next[state].get(token_id)
            state = self._append(state, token_id) if known is None else self._exactly(state, token_id, known)
            at = state
            while at > 0:
                counts[at] += 1
                at = links[at]
        return state

    def count(self, token_ids: Sequence[int]) -> int:
        """How often a run of tokens occurs; those that texts share by their beginning count once."""
        state = ROOT
        for token_id in token_ids:
            found = self._next[state].get(token_id)
            if found is None:
                return 0
            state = found
        return self._count[state]

    @staticmethod
    def look_up(
        indices: Sequence["SuffixIndex"],
        states: Sequence[int],
        new_tokens: Sequence[Sequence[int]],
        num_followed: int,
        rule: Rule,
    ) -> tuple[Sequence[int], Proposals]:
        """Texts that stand at states of these indices, which may be the same, go on with tokens, the first of each
        first; then what most often followed each of the first num_followed texts. Returns all new states and that."""
        grown = list(states)
        for step in range(max(map(len, new_tokens), default=0)):
            for i, (index, token_ids) in enumerate(zip(indices, new_tokens, strict=True)):
                grown[i] = index.extend(grown[i], token_ids[step : step + 1])
        return grown, Proposals.of([indices[i]._follow(grown[i], rule) for i in range(num_followed)])

    def _follow(self, state: int, rule: Rule) -> list[int]:
        """What most often followed the newest tokens of a text that stands at this state.

        The longest run at its end that was followed by anything is the match, its newest max_match tokens at most; none
        shorter than min_match is followed, and where a continuation ends the longest match at its own end goes on. A
        token's probability is estimated as n / (N + 1/2), for n of N continuations; it ends before their product falls
        below min_probability.
        """
        max_tokens, min_match, max_match, min_probability = rule
        nexts, links, lengths, counts = self._next, self._link, self._length, self._count
        while state > 0 and lengths[links[state]] >= max_match:
            state = links[state]
        token_ids: list[int] = []
        probability = 1.0
        while len(token_ids) < max_tokens:
            followers = nexts[state]
            while not followers and state > 0:
                state = links[state]
                followers = nexts[state]
            if lengths[state] < min_match:
                break
            if len(followers) == 1:
                ((token_id, state),) = followers.items()
                best = total = counts[state]
            else:
                best = total = 0
                for candidate, reached in followers.items():
                    count = counts[reached]
                    total += count
                    if count > best:
                        best, token_id, state = count, candidate, reached
            probability *= best / (total + _PRIOR)
            if probability < min_probability:
                break
            token_ids.append(token_id)
        return token_ids

    def _append(self, state: int, token_id: int) -> int:
        """A state for a run that never occurred."""
        nexts, links = self._next, self._link
        new = self._add({}, ROOT, self._length[state] + 1, 0)
        at = state
        while at >= 0:
            known = nexts[at].get(token_id)
            if known is not None:
                links[new] = self._exactly(at, token_id, known)
                break
            nexts[at][token_id] = new
            at = links[at]
        return new

    def _exactly(self, state: int, token_id: int, known: int) -> int:
        """The state whose longest run is this state's and the token; split off `known` where that has longer ones."""
        length = self._length[state] + 1
        if self._length[known] == length:
            return known
        nexts, links = self._next, self._link
        split = self._add(dict(nexts[known]), links[known], length, self._count[known])
        links[known] = split
        at = state
        while at >= 0 and nexts[at].get(token_id) == known:
            nexts[at][token_id] = split
            at = links[at]
        return split

    def _add(self, followers: dict[int, int], link: int, length: int, count: int) -> int:
        self._next.append(followers)
        self._link.append(link)
        self._length.append(length)
        self._count.append(count)
        return len(self._next) - 1
