"""Is the draft accepted? Charts of acceptance, draft length and draft training."""

from backend.figures.elements import Chart, chart_figure, line, line_with_envelope, reference
from backend.figures.palette import PALETTE, SEQUENCE
from contract.telemetry.metrics import MAX_DRAFT_LENGTH, MAX_SEQUENCES_EXPONENT

AFTER_STEP_1 = "Appears after the first step."
_DASHES = ("solid", "dash", "dot")


def speculation() -> list[Chart]:
    """Charts of the group Speculation."""
    return [_acceptance_length(), _acceptance_positions(), _draft_length(), _speculated_rounds(), _draft_loss()]


def _acceptance_length() -> Chart:
    traces = [
        *line_with_envelope("rollout/acceptance_length_tokens", "acceptance length", PALETTE["acceptance"]),
        line(
            "draft/expected_acceptance_length_tokens",
            "expected by draft training",
            PALETTE["expected"],
            line={"width": 1.25},
        ),
        reference("rollout/draft_length_tokens", "all accepted, k + 1", offset=1),
    ]
    return Chart(
        "acceptance_length",
        "Acceptance length, tokens per round",
        "Speculation",
        "Tokens emitted per verification round, the correction or bonus token counted: 1 when nothing is accepted, "
        "k + 1 when everything is. Draft training expects its own from the overlap of draft and policy, for its own k.",
        AFTER_STEP_1,
        chart_figure(traces, "tokens per round", yaxis={"autorangeoptions": {"include": 1, "minallowed": 1}}),
    )


def _acceptance_positions() -> Chart:
    traces = [
        line(
            f"rollout/acceptance_position_{position}_fraction",
            f"position {position}",
            SEQUENCE[(position - 1) % len(SEQUENCE)],
            line={"dash": _DASHES[(position - 1) // len(SEQUENCE)]},
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


def _draft_length() -> Chart:
    mean = line("controller/draft_length_mean_tokens", "all rounds", PALETTE["draft_length"], line={"width": 2.5})
    by_sequences = [
        line(
            f"controller/draft_length_sequences_{2**exponent}_tokens",
            _sequences(exponent),
            SEQUENCE[(exponent + 1) % len(SEQUENCE)],
            line={"width": 1.25, "dash": _DASHES[exponent // len(SEQUENCE)]},
            meta={"is_main": False},
        )
        for exponent in range(MAX_SEQUENCES_EXPONENT + 1)
    ]
    return Chart(
        "draft_length",
        "Draft length k, tokens",
        "Speculation",
        "Mean draft length of the step's rounds, 0 where a round had no draft, and by how many sequences were decoded "
        "together: as a rollout drains, k may rise.",
        AFTER_STEP_1,
        chart_figure([mean, *by_sequences], "tokens", yaxis={"rangemode": "tozero"}),
    )


def _sequences(exponent: int) -> str:
    if exponent < 2:
        return f"{2**exponent} sequence{'s' * exponent}"
    return f"{2 ** (exponent - 1) + 1} to {2**exponent}"


def _speculated_rounds() -> Chart:
    share = line_with_envelope(
        "controller/speculated_round_fraction", "speculated", PALETTE["draft_length"], meta={"factor": 100}
    )
    return Chart(
        "speculated_rounds",
        "Rounds with a draft, %",
        "Speculation",
        "Share of the step's rounds that speculated. The controller leaves drafts out where they would not pay.",
        AFTER_STEP_1,
        chart_figure(share, "% of rounds", yaxis={"range": [0, 105]}),
    )


def _draft_loss() -> Chart:
    return Chart(
        "draft_loss",
        "Loss of the draft, nats",
        "Speculation",
        "Cross-entropy of the draft against the policy, on each step's rollouts.",
        "Appears after the first step that trains the draft.",
        chart_figure(line_with_envelope("draft/loss_nats", "draft", PALETTE["draft_loss"]), "nats per token"),
    )
