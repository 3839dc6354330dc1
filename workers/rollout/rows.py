"""The sequences being decoded together.

Shape suffixes: R rows in use, T capacity, J new tokens a row at most.
"""

from typing import NamedTuple

import torch
from torch import Tensor


class Appended(NamedTuple):
    """What became of new tokens."""

    num_kept_R: Tensor
    """int64: those up to the end-of-sequence token and the length limit."""
    is_finished_R: Tensor


class Rows:
    """Tokens and log-probabilities of each row; the first num_live rows are in use."""

    def __init__(self, num_rows: int, capacity: int, eos_token_ids_E: Tensor) -> None:
        device = eos_token_ids_E.device
        self.num_live = 0
        self.completions: list[int] = []
        """Index of each live row's completion."""
        self._eos_token_ids_E = eos_token_ids_E
        self._eos_token_ids = frozenset(eos_token_ids_E.tolist())
        self._tokens = torch.zeros(num_rows, capacity, dtype=torch.int64, device=device)
        self._logprobs = torch.zeros(num_rows, capacity, device=device)
        self._lengths = torch.zeros(num_rows, dtype=torch.int64, device=device)
        self._limits = torch.zeros(num_rows, dtype=torch.int64, device=device)

    @property
    def token_ids_RT(self) -> Tensor:
        """Prompt and response; what lies beyond a row's length means nothing."""
        return self._tokens[: self.num_live]

    @property
    def lengths_R(self) -> Tensor:
        """Tokens of each row."""
        return self._lengths[: self.num_live]

    def place(self, rows: Tensor, completions: list[int], prompts_RT: Tensor, lengths_R: Tensor, max_new: int) -> None:
        """Start completions in rows, which are live ones that finished or the ones after the last."""
        self._tokens[rows, : prompts_RT.shape[1]] = prompts_RT
        self._lengths[rows] = lengths_R
        self._limits[rows] = lengths_R + max_new
        for row, completion in zip(rows.tolist(), completions, strict=True):
            self.completions[row : row + 1] = [completion]
        self.num_live = len(self.completions)

    def append(self, rows: Tensor | slice, token_ids_RJ: Tensor, logprobs_RJ: Tensor, num_new_R: Tensor) -> Appended:
        """Add each row's first num_new tokens, as far as they are part of the response."""
        lengths_R = self._lengths[rows]
        offsets_J = torch.arange(token_ids_RJ.shape[1], device=lengths_R.device)
        columns_RJ = lengths_R.unsqueeze(1) + offsets_J
        row_ids_R1 = torch.arange(len(self._tokens), device=lengths_R.device)[rows].unsqueeze(1)
        self._tokens.index_put_((row_ids_R1, columns_RJ), token_ids_RJ)
        self._logprobs.index_put_((row_ids_R1, columns_RJ), logprobs_RJ)
        num_allowed_R = torch.minimum(num_new_R, self._limits[rows] - lengths_R)
        is_eos_RJ = torch.isin(token_ids_RJ, self._eos_token_ids_E) & (offsets_J < num_allowed_R.unsqueeze(1))
        has_eos_R = is_eos_RJ.any(1)
        num_kept_R = torch.where(has_eos_R, is_eos_RJ.int().argmax(1) + 1, num_allowed_R)
        self._lengths[rows] = lengths_R + num_kept_R
        return Appended(num_kept_R, has_eos_R | (self._lengths[rows] >= self._limits[rows]))

    def is_eos(self, token_id: int) -> bool:
        """Whether the token ends a response."""
        return token_id in self._eos_token_ids

    def response(self, row: int, prompt_length: int) -> tuple[list[int], list[float]]:
        """Tokens and log-probabilities after the prompt."""
        at = slice(prompt_length, int(self._lengths[row]))
        return self._tokens[row, at].tolist(), self._logprobs[row, at].tolist()

    def drop_last(self, target: int) -> None:
        """Free row `target` by moving the last live row into it."""
        for tensor in (self._tokens, self._logprobs, self._lengths, self._limits):
            tensor[target] = tensor[self.num_live - 1]
        self.completions[target] = self.completions[-1]
        self.completions.pop()
        self.num_live -= 1
