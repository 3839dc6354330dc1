"""The sequences being decoded together, kept on the host: what they hold decides what is drafted, counted and ended."""

from collections.abc import Sequence, Set
from dataclasses import dataclass, field


@dataclass(slots=True)
class Row:
    """One sequence."""

    completion: int
    """Index of its response in the result."""
    token_ids: list[int]
    """Prompt and response."""
    num_prompt_tokens: int
    max_tokens: int
    """Length of prompt and response together at which it is cut."""
    logprobs: list[float] = field(default_factory=list)
    """Of the response's tokens."""

    def append(self, token_ids: Sequence[int], logprobs: Sequence[float], eos_token_ids: Set[int]) -> tuple[int, bool]:
        """Add new tokens as far as they are part of the response; how many that were, and whether it is complete."""
        num_kept = min(len(token_ids), self.max_tokens - len(self.token_ids))
        is_ended = False
        for index in range(num_kept):
            if token_ids[index] in eos_token_ids:
                num_kept, is_ended = index + 1, True
                break
        self.token_ids += token_ids[:num_kept]
        self.logprobs += logprobs[:num_kept]
        return num_kept, is_ended or len(self.token_ids) >= self.max_tokens

    @property
    def response(self) -> list[int]:
        """The tokens after the prompt."""
        return self.token_ids[self.num_prompt_tokens :]
