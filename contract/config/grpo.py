"""Group relative policy optimisation, and what surrounds its steps."""

from pydantic import Field, NonNegativeFloat

from contract.config.base import MAX_COUNT, ConfigModel, Count, CountOrNone

MAX_SAMPLES = 64
"""Rollouts that one event carries at most."""


class GrpoConfig(ConfigModel):
    """The algorithm's settings."""

    num_steps: Count = 40
    """Steps of the whole run: each generates responses, rewards them and updates the policy."""
    num_prompts_per_step: Count = 16
    """Prompts drawn for each step."""
    num_generations_per_prompt: int = Field(8, ge=2, le=MAX_COUNT)
    """Responses sampled per prompt: the group whose mean reward is the baseline."""
    num_updates_per_step: Count = 1
    """Policy updates on each step's responses, an equal share each; ratios are clipped from the second on."""
    clip_ratio_low: float = Field(0.2, gt=0, lt=1)
    """The probability ratio is clipped below at 1 - this."""
    clip_ratio_high: float = Field(0.28, gt=0)
    """The probability ratio is clipped above at 1 + this."""
    kl_penalty: NonNegativeFloat = 0.0
    """Weight of the KL divergence (k3 estimate) from the starting policy; 0 keeps no reference policy."""
    normalize_advantages: bool = True
    """Divide advantages by the standard deviation of their group's rewards."""
    leave_one_out: bool = False
    """Use the mean reward of the group's other responses as the baseline."""


class ValidationConfig(ConfigModel):
    """Accuracy on held-out prompts that are the same at every validation."""

    interval_steps: CountOrNone = 10
    """Steps between validations, besides one before the first step and one after the last; 0 switches it off."""
    num_prompts: Count = 128
    """Held-out prompts, one response each."""
    temperature: NonNegativeFloat = 1.0
    """Sampling temperature of validation; 0 is greedy."""


class CheckpointConfig(ConfigModel):
    """Where a new attempt goes on after a crash."""

    interval_steps: Count = 10
    """Steps between checkpoints, besides one after the last step."""
    max_kept: Count = 2
    """Older checkpoints are deleted."""


class SamplesConfig(ConfigModel):
    """Rollouts stored with their verification rounds, for reading."""

    interval_steps: CountOrNone = 5
    """Steps between stored samples; 0 stores none."""
    num_samples: int = Field(4, ge=1, le=MAX_SAMPLES)
    """Rollouts stored each time."""
