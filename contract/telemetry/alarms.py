"""The alarms that a worker can raise: what each means and what to do about it."""

from dataclasses import dataclass
from enum import StrEnum


class AlarmName(StrEnum):
    """What is wrong."""

    DISTRIBUTION_DRIFT = "distribution_drift"
    ACCEPTANCE_COLLAPSE = "acceptance_collapse"
    NO_SPEEDUP = "no_speedup"
    LOGPROB_MISMATCH = "logprob_mismatch"
    DRAFT_DECAY = "draft_decay"


@dataclass(frozen=True, slots=True)
class AlarmKind:
    """One declared alarm, in words for the run's owner."""

    name: AlarmName
    title: str
    meaning: str
    what_to_do: str


_KINDS = (
    AlarmKind(
        AlarmName.DISTRIBUTION_DRIFT,
        "Distribution drift",
        "Responses are not distributed as the policy says, or the engine's counts contradict each other: what trains "
        "is not what was sampled.",
        "Stop the run and resume it with drafter none: if the alarm stays away, the drafting or the acceptance rule of "
        "the engine is at fault. Responses since the step it was raised at should not be trained on.",
    ),
    AlarmKind(
        AlarmName.ACCEPTANCE_COLLAPSE,
        "Acceptance collapse",
        "Nothing that the draft proposes is accepted: its weights are lost, or are those of another policy.",
        "Read the log for the last weight sync, and compare the draft's checkpoint with the policy's. Until it is "
        "mended, drafter none is faster.",
    ),
    AlarmKind(
        AlarmName.NO_SPEEDUP,
        "No speedup",
        "The probe measured that generation with speculation takes longer than without.",
        "Set draft_length_control to measured, which switches speculation off where it does not pay, or choose a "
        "smaller draft_length.",
    ),
    AlarmKind(
        AlarmName.LOGPROB_MISMATCH,
        "Log-probability mismatch",
        "Engine and trainer disagree about the same tokens: the engine's weights are stale, or its numerics are off.",
        "Look whether the weight sync failed at that step, and compare the engine's precision, temperature and "
        "truncation with the trainer's.",
    ),
    AlarmKind(
        AlarmName.DRAFT_DECAY,
        "Draft falling behind",
        "Fewer drafted tokens are accepted than at the run's best, or than the draft's own training expects: the "
        "policy moves away from the draft, or the engine drafts with other weights than the trainer's.",
        "Where acceptance fell slowly, raise online.num_updates_per_step or its learning rates, or train a new draft "
        "from the latest checkpoint. Where it fell at once or was low from the start, look at the draft's weight sync.",
    ),
)

ALARMS: dict[AlarmName, AlarmKind] = {kind.name: kind for kind in _KINDS}
