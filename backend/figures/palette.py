"""Colours by what they stand for, the same on every chart and page: Okabe and Ito's, told apart by the colour-blind,
and three neutral ones for what is not the matter."""

BLUE = "#0072B2"
SKY = "#56B4E9"
ORANGE = "#E69F00"
VERMILLION = "#D55E00"
GREEN = "#009E73"
PURPLE = "#CC79A7"
YELLOW = "#F0E442"
GREY = "#8C8C8C"

STAGES = {
    "generation": BLUE,
    "logprob": SKY,
    "train": ORANGE,
    "draft": VERMILLION,
    "reward": GREEN,
    "validation": PURPLE,
    "prepare": YELLOW,
    "data": "#B3B3B3",
    "probe": GREY,
    "checkpoint": "#6B4C9A",
    "other": "#5F5F5F",
}

QUANTITIES = {
    "reward_train": GREEN,
    "reward_validation": PURPLE,
    "acceptance": VERMILLION,
    "speedup_generation": BLUE,
    "speedup_step": GREEN,
    "response_length": BLUE,
    "truncated": ORANGE,
    "policy": ORANGE,
    "exactness": SKY,
    "exactness_ordered": PURPLE,
    "evidence": BLUE,
    "draft_length": BLUE,
    "expected": ORANGE,
    "draft_loss": VERMILLION,
    "warm_up": ORANGE,
    "reference": GREY,
}

PALETTE = STAGES | QUANTITIES

SEQUENCE = [BLUE, ORANGE, GREEN, VERMILLION, PURPLE, SKY, YELLOW]
"""For things without a colour of their own: positions, runs in a comparison."""


def faint(color: str, alpha: float = 0.18) -> str:
    """The colour (#rrggbb) as a see-through fill."""
    red, green, blue = (int(color[start : start + 2], 16) for start in (1, 3, 5))
    return f"rgba({red},{green},{blue},{alpha})"
