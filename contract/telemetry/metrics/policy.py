"""The policy's training."""

from collections.abc import Iterator

from contract.telemetry.metrics.metric import Metric


def policy() -> Iterator[Metric]:
    """Loss, divergences, and how far engine and trainer differ."""
    yield Metric("policy/loss", "1", "Clipped GRPO loss, mean over response tokens.", "mean", "trainer")
    yield Metric("policy/grad_norm", "1", "Norm of the policy's gradient before clipping.", "last", "trainer")
    yield Metric("policy/entropy_nats", "nats", "Mean entropy of the policy at response tokens.", "mean", "trainer")
    yield Metric(
        "policy/clip_fraction",
        "1",
        "Share of response tokens whose ratio left the clip range.",
        "mean",
        "trainer",
    )
    yield Metric(
        "policy/kl_reference_nats",
        "nats",
        "KL divergence from the starting policy (k3 estimate).",
        "mean",
        "trainer",
    )
    yield Metric(
        "policy/kl_update_nats",
        "nats",
        "KL divergence of the updated policy from the one that generated, on the step's tokens (k3 estimate).",
        "mean",
        "trainer",
    )
    yield Metric(
        "mismatch/kl_nats",
        "nats",
        "KL divergence between the engine's and the trainer's log-probabilities of the same tokens (k3 estimate).",
        "mean",
        "trainer",
    )
    yield Metric(
        "mismatch/token_mult_prob_error_ratio",
        "1",
        "Mean of exp(|engine - trainer log-probability|); above 1.05 something is wrong.",
        "mean",
        "trainer",
    )
