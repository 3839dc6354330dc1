"""What the policy is trained on: prompts and the reward that verifies its answers."""

from typing import Annotated, Literal

from pydantic import Field

from contract.config.base import ConfigModel, Count
from contract.config.dataset import HeldOutShare, SourceConfig, Text, ValidationSourceConfig
from contract.config.reward import MathReward, OverlongConfig, RewardConfig, ZeroOverlong


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


class DatasetTask(ConfigModel):
    """Prompts of a dataset, and a reward that scores the responses against its answers."""

    kind: Literal["dataset"] = "dataset"
    train: SourceConfig
    """Prompts of the training. Equal rows count once; rows without prompt or answer are left out and counted."""
    validation: ValidationSourceConfig = HeldOutShare()
    """Prompts of the validation. One that is in a source of its own is left out of training."""
    reward: RewardConfig = MathReward()
    """What a response is worth."""
    overlong: OverlongConfig = ZeroOverlong()
    """What becomes of responses that are too long."""
    max_prompt_tokens: Count = 1024
    """Longer prompts, the chat template's tokens among them, are left out and counted."""
    chat_template: Literal["policy", "plain"] = "policy"
    """policy: the template of the policy's tokenizer, up to where its answer begins. plain: the prompt as it is, for
    base models; several messages follow each other with an empty line in between."""
    system_prompt: Text = ""
    """Stands before the prompt where the row has no system message of its own."""
    thinking: Literal["default", "enabled", "disabled"] = "default"
    """The chat template's enable_thinking, or what the template does by itself."""

    def longest_prompt(self) -> int:
        """Tokens of the longest prompt."""
        return self.max_prompt_tokens


TaskConfig = Annotated[ArithmeticTask | DatasetTask, Field(discriminator="kind")]
