"""Is the draft accepted, and are samples still exact? Charts of acceptance, draft training and losslessness."""

from backend.figures.elements import (
    SMALL,
    Chart,
    chart_figure,
    line,
    line_with_envelope,
    reference,
    right_axis,
    told,
    unseen_axis,
)
from backend.figures.palette import PALETTE, SEQUENCE
from contract.telemetry.metrics import MAX_DRAFT_LENGTH

KS_CRITICAL_1_PERCENT = 1.6276
"""Kolmogorov's critical value at 1 %, sqrt(-ln(0.005) / 2): a distance above it / sqrt(n) is significant."""
AFTER_STEP_1 = "Appears after the first step."


def speculation() -> list[Chart]:
    """Charts of the group Speculation."""
    return [_acceptance_length(), _acceptance_positions(), _draft_loss()]


def exactness() -> list[Chart]:
    """Charts of the group Exactness."""
    return [_losslessness(), _mismatch()]


def _acceptance_length() -> Chart:
    traces = [
        *line_with_envelope("rollout/acceptance_length_tokens", "acceptance length", PALETTE["acceptance"]),
        reference("rollout/draft_length_tokens", "all accepted, k + 1", offset=1),
    ]
    return Chart(
        "acceptance_length",
        "Acceptance length, tokens per round",
        "Speculation",
        "Tokens emitted per verification round, the correction or bonus token counted: 1 when nothing is accepted, "
        "k + 1 when everything is.",
        AFTER_STEP_1,
        chart_figure(traces, "tokens per round", yaxis={"autorangeoptions": {"include": 1, "minallowed": 1}}),
    )


def _acceptance_positions() -> Chart:
    dashes = ("solid", "dash", "dot")
    traces = [
        line(
            f"rollout/acceptance_position_{position}_fraction",
            f"position {position}",
            SEQUENCE[(position - 1) % len(SEQUENCE)],
            line={"dash": dashes[(position - 1) // len(SEQUENCE)]},
            meta={"factor": 100},
        )
        for position in range(1, MAX_DRAFT_LENGTH + 1)
    ]
    return Chart(
        "acceptance_positions",
        "Acceptance by draft position, %",
        "Speculation",
        "Share of verification rounds in which the drafted token at each position was accepted.",
        AFTER_STEP_1,
        chart_figure(traces, "% of rounds", yaxis={"rangemode": "tozero"}),
    )


def _draft_loss() -> Chart:
    return Chart(
        "draft_loss",
        "Loss of the draft head, nats",
        "Speculation",
        "Cross-entropy of the draft head against the policy, on each step's rollouts.",
        "Appears after the first step that trains the draft head.",
        chart_figure(line_with_envelope("draft/loss_nats", "draft head", PALETTE["draft_loss"]), "nats per token"),
    )


def _losslessness() -> Chart:
    limit = reference("lossless/num_tokens", "significant at 1 %", power=-0.5, factor=KS_CRITICAL_1_PERCENT)
    hints = [told("lossless/ks_p_value", "p-value", "y2"), told("lossless/num_tokens", "tokens", "y3")]
    distance = line_with_envelope("lossless/ks_distance", "distance", PALETTE["exactness"])
    return Chart(
        "losslessness",
        "Losslessness, Kolmogorov-Smirnov distance",
        "Exactness",
        "Distance between the speculative samples' distribution and the policy's. Exact sampling stays below the "
        "dashed line in 99 of 100 steps.",
        AFTER_STEP_1,
        chart_figure(
            [*distance, limit, *hints],
            "distance",
            yaxis={"rangemode": "tozero"},
            yaxis2=unseen_axis(".3~g"),
            yaxis3=unseen_axis(",d"),
        ),
    )


def _mismatch() -> Chart:
    error = line(
        "mismatch/token_mult_prob_error_ratio",
        "probability error, ratio",
        PALETTE["reference"],
        yaxis="y2",
        line={"width": 1.25},
    )
    divergence = line_with_envelope("mismatch/kl_nats", "KL divergence", PALETTE["exactness"])
    return Chart(
        "mismatch",
        "Engine against trainer, KL divergence in nats",
        "Exactness",
        "How far the engine's log-probabilities are from the trainer's for the same tokens. A probability error above "
        "1.05 means that something is wrong.",
        AFTER_STEP_1,
        chart_figure(
            [*divergence, error],
            "nats per token",
            yaxis=SMALL,
            yaxis2=right_axis("ratio", autorangeoptions={"include": 1, "minallowed": 1}, hoverformat=".5~r"),
        ),
    )
