"""A small language model that drafts for a large one: a Qwen3-type transformer of its own.

Shape suffixes: B sequences, T positions, V vocabulary.
"""

from torch import Tensor

from workers.model.config import ModelConfig
from workers.model.draft import DraftModule, PolicyPass
from workers.model.qwen3 import Qwen3Policy


class DraftModel(DraftModule):
    """It reads tokens only, so that every draft step is an ordinary forward pass of it."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.language_model = Qwen3Policy(config)

    @property
    def tap_layers(self) -> tuple[int, ...]:
        return ()

    def initialize(self, policy: Qwen3Policy, seed: int) -> None:
        """Nothing is taken from the policy, whose widths are others."""
        self.language_model.initialize(seed)

    def forward(self, seen: PolicyPass, unroll_length: int) -> list[Tensor]:
        """See DraftModule.forward: a token's score is the same in whichever step of a draft it is drafted."""
        num_starts = seen.token_ids_BT.shape[1] - 2
        logits_BTV = self.language_model(seen.token_ids_BT).logits_BTV
        return [logits_BTV[:, step + 1 : num_starts + 1] for step in range(unroll_length)]

    def export(self, policy: Qwen3Policy) -> dict[str, Tensor]:
        """Under its names in a Qwen3 checkpoint."""
        return {name: tensor.detach() for name, tensor in self.language_model.state_dict().items()}
