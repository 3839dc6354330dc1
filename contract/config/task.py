"""What the policy is trained on: prompts and the reward that verifies its answers."""

from typing import Literal

from pydantic import Field

from contract.config.base import ConfigModel


class ArithmeticTask(ConfigModel):
    """Sums with written-out working; the number after '#' is checked exactly: reward 1 or 0."""

    kind: Literal["arithmetic"] = "arithmetic"
    num_terms: int = Field(4, ge=2, le=8)
    """Numbers to add in one prompt."""
    max_term: int = Field(99, ge=19, le=9999)
    """Largest number in a prompt; the smallest is 10."""

    def longest_prompt(self) -> int:
        """Characters of the longest prompt."""
        return self.num_terms * (len(str(self.max_term)) + 1)

    def longest_solution(self) -> int:
        """Characters of the longest worked solution, `#` and the answer included; workers.data.arithmetic writes them.

        A sum written out is `next <left>+<term>:`, ` a+b+c=s` for each of its columns, and ` ><total>;`. s has two
        digits where its column carries, which the highest column does only if the total has a digit more than left.
        """
        length = 1 + len(str(self.num_terms * self.max_term))
        for done in range(1, self.num_terms):
            left, total = str(done * self.max_term), str((done + 1) * self.max_term)
            columns = 9 * len(left) - (len(total) == len(left))
            length += len(f"next {left}+{self.max_term}:") + columns + len(f" >{total};")
        return length


# A union of one for now: `kind` is written in every stored configuration, so that further tasks need no migration.
TaskConfig = ArithmeticTask
