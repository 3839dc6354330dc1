"""Are samples still the policy's? Charts of the audit."""

from backend.figures.elements import (
    SMALL,
    Chart,
    chart_figure,
    horizontal,
    line,
    line_with_envelope,
    reference,
    right_axis,
    told,
    unseen_axis,
)
from backend.figures.palette import PALETTE

KS_CRITICAL_1_PERCENT = 1.6276
"""Kolmogorov's critical value at 1 %, sqrt(-ln(0.005) / 2): a distance above it / sqrt(n) is significant."""
NORMAL_CRITICAL_1_PERCENT = 2.5758
"""A standard normal draw is further from 0 in 1 of 100 cases."""
ALARM_LOG10_E_VALUE = 2
"""Where exact sampling ever gets with a chance of 1 % at most: the audit's limit unless the run sets another."""
AFTER_STEP_1 = "Appears after the first step."


def exactness() -> list[Chart]:
    """Charts of the group Exactness."""
    return [_losslessness(), _evidence(), _acceptance_test(), _mismatch()]


def _evidence() -> Chart:
    parts = {
        "pit_": ("all tokens", PALETTE["exactness"]),
        "ordered_pit_": ("tested drafts", PALETTE["exactness_ordered"]),
        "acceptance_": ("acceptances", PALETTE["acceptance"]),
    }
    lines = [
        line(f"lossless/{part}log10_e_value", name, color, line={"width": 1.25}, meta={"is_main": False})
        for part, (name, color) in parts.items()
    ]
    together = line("lossless/log10_e_value", "together", PALETTE["evidence"], line={"width": 2.5})
    return Chart(
        "evidence",
        "Evidence against exact sampling, log10 of the e-value",
        "Exactness",
        "What three sequential tests have gathered over the whole run. Exact sampling ever reaches the dotted line, at "
        "2, with a chance of 1 % at most; there the alarm is raised unless audit.false_alarm_rate says otherwise.",
        AFTER_STEP_1,
        chart_figure(
            [together, *lines],
            "log10 e-value",
            yaxis={"autorangeoptions": {"include": [0, ALARM_LOG10_E_VALUE + 0.2]}},
            shapes=[horizontal(ALARM_LOG10_E_VALUE)],
        ),
    )


def _acceptance_test() -> Chart:
    score = line("lossless/acceptance_z_score", "z-score", PALETTE["acceptance"], line={"width": 1.25})
    hints = [
        told("lossless/acceptance_gap_fraction", "gap", "y2"),
        told("lossless/num_tested_drafts", "tested drafts", "y3"),
    ]
    limits = [horizontal(NORMAL_CRITICAL_1_PERCENT), horizontal(-NORMAL_CRITICAL_1_PERCENT)]
    return Chart(
        "acceptance_test",
        "Acceptances against their chances, z-score",
        "Exactness",
        "Accepted drafts less their chances min(1, policy / draft probability), in standard deviations. An exact "
        "acceptance rule stays between the dotted lines in 99 of 100 steps; above, too much is accepted.",
        "Appears after the first step with a draft whose probabilities are known.",
        chart_figure(
            [score, *hints],
            "standard deviations",
            yaxis={"autorangeoptions": {"include": [-3, 3]}},
            yaxis2=unseen_axis(".3~g"),
            yaxis3=unseen_axis(",d"),
            shapes=limits,
        ),
    )


def _losslessness() -> Chart:
    limit = reference("lossless/num_tokens", "significant at 1 %", power=-0.5, factor=KS_CRITICAL_1_PERCENT)
    hints = [told("lossless/ks_p_value", "p-value", "y2"), told("lossless/num_tokens", "tokens", "y3")]
    distance = line_with_envelope("lossless/ks_distance", "all tokens", PALETTE["exactness"])
    ordered = line("lossless/ordered_ks_distance", "tested drafts", PALETTE["exactness_ordered"], line={"width": 1.25})
    whole_run = line("lossless/run_ks_distance", "whole run", PALETTE["evidence"], line={"width": 1.25})
    return Chart(
        "losslessness",
        "Losslessness, Kolmogorov-Smirnov distance",
        "Exactness",
        "Distance between the speculative samples' distribution and the policy's: of each step's tokens, of its tested "
        "drafts ordered by draft over policy, and of all steps together. An exact step is below the dashed line in 99 "
        "of 100 cases.",
        AFTER_STEP_1,
        chart_figure(
            [*distance, ordered, whole_run, limit, *hints],
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
