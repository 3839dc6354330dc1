"""Is it learning, and is the policy healthy? Charts of rewards, lengths and updates."""

from backend.figures.elements import SMALL, Chart, band, chart_figure, line, line_with_envelope, right_axis
from backend.figures.palette import PALETTE, SEQUENCE

GREEN, PURPLE = PALETTE["reward_train"], PALETTE["reward_validation"]
BLUE, ORANGE, POLICY = PALETTE["response_length"], PALETTE["truncated"], PALETTE["policy"]
AFTER_STEP_1 = "Appears after the first step."


def learning() -> list[Chart]:
    """Charts of the group Learning."""
    return [_reward(), _response_length(), _reward_failures()]


def policy_health() -> list[Chart]:
    """Charts of the group Policy health."""
    return [_kl(), _entropy(), _clip_fraction(), _grad_norm()]


def _reward() -> Chart:
    validation = line(
        "validation/accuracy_fraction",
        "validation",
        PURPLE,
        mode="markers+lines",
        marker={"size": 8},
        line={"width": 2},
    )
    train = line_with_envelope("reward/train_mean", "train", GREEN)
    return Chart(
        "reward",
        "Reward, mean per response",
        "Learning",
        "Mean reward of the step's responses, and of held-out prompts that stay the same.",
        "Appears after the first validation, before step 1.",
        chart_figure([*train, validation], "reward", yaxis={"rangemode": "tozero"}),
    )


def _response_length() -> Chart:
    low = {"series": "rollout/response_length_min_tokens", "field": "min"}
    high = {"series": "rollout/response_length_max_tokens", "field": "max"}
    truncated = line(
        "rollout/truncated_fraction", "truncated", ORANGE, yaxis="y2", line={"width": 1.25}, meta={"factor": 100}
    )
    mean = line("rollout/response_length_mean_tokens", "mean", BLUE)
    return Chart(
        "response_length",
        "Response length, tokens",
        "Learning",
        "Mean length of the step's responses, shaded from the shortest to the longest; on the right the share that was "
        "cut at max_new_tokens.",
        AFTER_STEP_1,
        chart_figure(
            [*band(low, high, BLUE), mean, truncated],
            "tokens",
            yaxis={"rangemode": "tozero"},
            yaxis2=right_axis("truncated, %", rangemode="tozero"),
        ),
    )


def _reward_failures() -> Chart:
    names = {
        "raised": "raised an error",
        "timeout": "out of time",
        "invalid": "no finite number",
        "died": "process ended",
    }
    traces = [
        line(f"reward/num_failures_{kind}", name, color, line={"width": 1.25})
        for (kind, name), color in zip(names.items(), SEQUENCE, strict=False)
    ]
    return Chart(
        "reward_failures",
        "Responses without a score",
        "Learning",
        "How many of the step's responses the scorer failed to score, and why. Their rewards are 0; the log has the "
        "first of each kind.",
        "Appears after the first step of runs whose rewards are computed by math-verify, programs or a function.",
        chart_figure(traces, "responses", yaxis={"rangemode": "tozero"}),
    )


def _kl() -> Chart:
    traces = [
        *line_with_envelope("policy/kl_update_nats", "from the generating policy", POLICY),
        *line_with_envelope("policy/kl_reference_nats", "from the starting policy", PURPLE),
    ]
    return Chart(
        "policy_health_kl",
        "KL divergence of the policy, nats",
        "Policy health",
        "How far each update moves the policy, and, with a KL penalty, how far it is from where it started.",
        AFTER_STEP_1,
        chart_figure(traces, "nats per token", yaxis=SMALL),
    )


def _entropy() -> Chart:
    return Chart(
        "policy_health_entropy",
        "Entropy of the policy, nats",
        "Policy health",
        "Mean entropy at response tokens. A fall to zero means that the policy no longer explores.",
        AFTER_STEP_1,
        chart_figure(
            line_with_envelope("policy/entropy_nats", "entropy", POLICY),
            "nats per token",
            yaxis={"rangemode": "tozero"},
        ),
    )


def _clip_fraction() -> Chart:
    return Chart(
        "clip_fraction",
        "Clipped tokens, %",
        "Policy health",
        "Share of response tokens whose probability ratio left the clip range.",
        AFTER_STEP_1,
        chart_figure(
            line_with_envelope("policy/clip_fraction", "clipped", POLICY, meta={"factor": 100}),
            "% of tokens",
            yaxis={"rangemode": "tozero"},
        ),
    )


def _grad_norm() -> Chart:
    return Chart(
        "grad_norm",
        "Gradient norm of the policy",
        "Policy health",
        "Norm of the policy's gradient before clipping.",
        AFTER_STEP_1,
        chart_figure(line_with_envelope("policy/grad_norm", "policy", POLICY), "norm", yaxis={"rangemode": "tozero"}),
    )
