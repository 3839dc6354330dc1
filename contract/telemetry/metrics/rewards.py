"""What responses are worth, and which rows a dataset gave."""

from collections.abc import Iterator

from contract.telemetry.metrics.metric import Metric


def rewards() -> Iterator[Metric]:
    """See docs/operations/data_and_rewards.md."""
    yield Metric("reward/train_mean", "1", "Mean reward of the step's responses.", "mean", "reward")
    yield Metric("reward/train_std", "1", "Standard deviation of the step's rewards.", "mean", "reward")
    yield Metric(
        "reward/uninformative_group_fraction",
        "1",
        "Share of prompts whose responses all got the same reward and so teach nothing.",
        "mean",
        "reward",
    )
    yield Metric("validation/accuracy_fraction", "1", "Mean reward on the held-out prompts.", "mean", "reward")
    yield Metric(
        "validation/response_length_mean_tokens",
        "tokens",
        "Mean length of held-out responses.",
        "mean",
        "engine",
    )
    for split in ("train", "validation"):
        yield Metric(f"data/num_{split}_prompts", "1", f"Prompts of the dataset for {split}.", "last", "loop")
    for reason, means in (
        ("without_prompt", "without a prompt"),
        ("without_answer", "without an answer"),
        ("duplicate", "with the prompt of an earlier row"),
        ("in_validation", "of training with a prompt of the validation source"),
        ("too_long", "with a prompt longer than max_prompt_tokens"),
    ):
        yield Metric(f"data/num_rows_{reason}", "1", f"Rows of the dataset {means}, left out.", "last", "loop")
    for area, responses in (("reward", "the step's responses"), ("validation", "held-out responses")):
        yield Metric(
            f"{area}/num_failures", "1", f"How many of {responses} got no score and count as 0.", "sum", "reward"
        )
        for kind, means in (
            ("raised", "the scorer raised an error"),
            ("timeout", "the scorer was not back in time"),
            ("invalid", "the scorer gave no finite number"),
            ("died", "the scorer's process ended"),
        ):
            yield Metric(f"{area}/num_failures_{kind}", "1", f"Those of them for which {means}.", "sum", "reward")
