"""No optimiser step on a gradient that is not finite: one such step would end the run for good, unseen."""

import math

MAX_IN_A_ROW = 5
"""One overflow is bad luck; after this many the parameters themselves are beyond repair."""


class FiniteGradients:
    """Decides update by update whether the gradient may be applied."""

    def __init__(self, whose: str, mend: str) -> None:
        """whose: in words for the run's owner, such as "the policy"; mend: what the owner may change."""
        self._whose, self._mend = whose, mend
        self._num_in_a_row = 0

    def allow(self, grad_norm: float) -> bool:
        """Whether the norm is finite. Raises FloatingPointError at the fifth in a row that is not."""
        if math.isfinite(grad_norm):
            self._num_in_a_row = 0
            return True
        self._num_in_a_row += 1
        if self._num_in_a_row == MAX_IN_A_ROW:
            raise FloatingPointError(
                f"the gradient of {self._whose} was not finite in {MAX_IN_A_ROW} updates in a row (norm {grad_norm}): "
                f"{self._mend}, and start from an earlier checkpoint or anew"
            )
        return False
