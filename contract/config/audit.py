"""How closely a run watches whether its samples are the policy's, and when it calls that wrong."""

from pydantic import Field

from contract.config.base import ConfigModel, Count, CountOrNone


class AuditConfig(ConfigModel):
    """Tests of every step's tokens against the trainer's own probabilities, and the limits of the alarms."""

    max_tokens_per_step: Count = 16_384
    """About so many response tokens are tested a step, in whole responses spread evenly over it. Twice as many find a
    fault in half as many steps; each needs a row of the vocabulary's width."""
    max_evidence_tokens_per_step: CountOrNone = 4096
    """About so many response tokens a step come with what the draft said of them, which finds faults of the acceptance
    rule soonest; 0 tests without."""
    false_alarm_rate: float = Field(0.01, gt=0, lt=1)
    """Chance that a whole run of exact sampling raises distribution_drift; the limit of the e-value is 1 over it."""
    min_distance: float = Field(0.005, gt=0, lt=1)
    """Smaller distances from the policy's distribution raise no distribution_drift however certain they are: engine and
    trainer round differently, which in bfloat16 makes about 0.001."""
    max_mismatch_ratio: float = Field(1.05, gt=1)
    """A token_mult_prob_error above this raises logprob_mismatch."""
    max_mismatch_growth_ratio: float = Field(3.0, gt=1)
    """So does one whose part above 1 is so many times that of the run's earlier steps: weights that missed a sync."""
    max_acceptance_fall_fraction: float = Field(0.15, gt=0, lt=1)
    """draft_decay is raised where acceptance at the first draft position, smoothed over some steps, is lower than its
    best by more than this share of it."""
