"""Training of policy and draft before the first step, and of the draft in every step."""

from collections.abc import Iterator
from typing import Literal

from contract.telemetry.metrics.metric import MAX_DRAFT_LENGTH, Metric


def drafts() -> Iterator[Metric]:
    """Losses, and acceptance as it is expected."""
    yield Metric("draft/loss_nats", "nats", "Cross-entropy of the draft head against the policy.", "mean", "trainer")
    yield Metric("draft/grad_norm", "1", "Norm of the draft head's gradient before clipping.", "last", "trainer")
    yield Metric(
        "draft/expected_acceptance_length_tokens",
        "tokens",
        "Acceptance length expected from the overlap of draft and policy on the step's draft training.",
        "mean",
        "trainer",
    )
    yield Metric(
        "draft/expected_acceptance_position_1_fraction",
        "1",
        "Chance that the first drafted token is accepted, by that overlap, before the step's draft training.",
        "last",
        "trainer",
    )

    yield Metric(
        "warm_up/loss_nats",
        "nats",
        "Cross-entropy of the supervised warm-up.",
        "mean",
        "trainer",
        "warm_up_step",
    )
    yield Metric(
        "draft_pretraining/loss_nats",
        "nats",
        "Cross-entropy of the draft head against the starting policy.",
        "mean",
        "trainer",
        "draft_pretraining_step",
    )
    yield Metric(
        "draft_pretraining/expected_acceptance_length_tokens",
        "tokens",
        "Acceptance length expected from the overlap of draft and policy on the training batch.",
        "mean",
        "trainer",
        "draft_pretraining_step",
    )


def held_out() -> Iterator[Metric]:
    """What a draft that was just trained is worth on prompts it was not trained on."""
    for area, measured, num_positions in (
        ("held_out_expected_acceptance", "expected from the overlap of draft and policy on held-out responses", 8),
        ("held_out_acceptance", "measured in speculative generation for held-out prompts", MAX_DRAFT_LENGTH),
    ):
        source: Literal["trainer", "engine"] = "engine" if area == "held_out_acceptance" else "trainer"
        yield Metric(
            f"draft_pretraining/{area}_length_tokens",
            "tokens",
            f"Acceptance length of the trained draft, {measured}.",
            "pooled",
            source,
            "draft_pretraining_step",
        )
        for position in range(1, num_positions + 1):
            yield Metric(
                f"draft_pretraining/{area}_position_{position}_fraction",
                "1",
                f"Share of drafts whose token at position {position} is accepted, {measured}.",
                "pooled",
                source,
                "draft_pretraining_step",
            )
