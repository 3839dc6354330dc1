"""The stages of a run and of a step, in the field's terms."""

from enum import StrEnum


class Stage(StrEnum):
    """What a worker is doing now. The order is that of a run: set-up stages first, then those of one step."""

    START = "start"
    WARM_UP = "warm_up"
    DRAFT_PRETRAINING = "draft_pretraining"
    DATA = "data"
    PREPARE = "prepare"
    GENERATION = "generation"
    REWARD = "reward"
    LOGPROB = "logprob"
    TRAIN = "train"
    DRAFT = "draft"
    PROBE = "probe"
    VALIDATION = "validation"
    CHECKPOINT = "checkpoint"


STEP_STAGES: tuple[Stage, ...] = (
    Stage.DATA,
    Stage.PREPARE,
    Stage.GENERATION,
    Stage.REWARD,
    Stage.LOGPROB,
    Stage.TRAIN,
    Stage.DRAFT,
    Stage.PROBE,
    Stage.VALIDATION,
    Stage.CHECKPOINT,
)
"""Leaf stages of a step: disjoint in time, so that their times and `time/other_s` add up to `time/step_s`."""
