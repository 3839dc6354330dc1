"""The suffix index by compiled code; see workers.rollout.drafters.suffix_index."""

import ctypes
from array import array
from collections.abc import Sequence

from workers.rollout.drafters.lookup import Proposals, Rule
from workers.rollout.native.library import load


class NativeSuffixIndex:
    """As SuffixIndex, in memory of its own."""

    __slots__ = ("_library", "pointer")

    def __init__(self, copied: "NativeSuffixIndex | None" = None) -> None:
        """Raises RuntimeError where nothing can be compiled."""
        library = load()
        if library is None:
            raise RuntimeError("there is no C compiler: use SuffixIndex")
        self._library: ctypes.CDLL = library
        self.pointer: int = library.suffix_new() if copied is None else library.suffix_copy(copied.pointer)

    def __del__(self) -> None:
        if hasattr(self, "pointer"):
            self._library.suffix_free(self.pointer)

    @property
    def num_states(self) -> int:
        return self._library.suffix_num_states(self.pointer)

    def copy(self) -> "NativeSuffixIndex":
        return NativeSuffixIndex(self)

    def extend(self, state: int, token_ids: Sequence[int]) -> int:
        return self.look_up([self], [state], [token_ids], 0, Rule(0, 0, 0, 0.0))[0][0]

    def count(self, token_ids: Sequence[int]) -> int:
        tokens = array("q", token_ids)
        return self._library.suffix_count(self.pointer, _address(tokens), len(tokens))

    @staticmethod
    def look_up(
        indices: Sequence["NativeSuffixIndex"],
        states: Sequence[int],
        new_tokens: Sequence[Sequence[int]],
        num_followed: int,
        rule: Rule,
    ) -> tuple[Sequence[int], Proposals]:
        """One call for all texts."""
        tokens, ends = array("q"), array("q")
        for some in new_tokens:
            tokens.extend(some)
            ends.append(len(tokens))
        pointers, grown = array("q", [index.pointer for index in indices]), array("q", states)
        drafted, lengths = array("q", bytes(8 * num_followed * rule.max_tokens)), array("q", bytes(8 * num_followed))
        indices[0]._library.suffix_look_up(
            *map(_address, (pointers, grown, tokens, ends)),
            *(len(indices), num_followed, *rule),
            *map(_address, (drafted, lengths)),
        )
        return grown, Proposals(drafted, rule.max_tokens, lengths)


def _address(numbers: "array[int]") -> int:
    return numbers.buffer_info()[0]
