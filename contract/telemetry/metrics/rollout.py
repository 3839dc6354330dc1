"""How responses are generated: acceptance, draft lengths, speedup."""

from collections.abc import Iterator

from contract.telemetry.metrics.metric import MAX_DRAFT_LENGTH, MAX_SEQUENCES_EXPONENT, Metric


def rollout() -> Iterator[Metric]:
    """Acceptance and responses."""
    yield Metric(
        "rollout/acceptance_length_tokens",
        "tokens",
        "1 + accepted tokens / verification rounds, between 1 and k + 1; a round ended by an end-of-sequence token "
        "counts whole.",
        "pooled",
        "engine",
    )
    yield Metric("rollout/acceptance_rate_fraction", "1", "Accepted over drafted tokens.", "pooled", "engine")
    for position in range(1, MAX_DRAFT_LENGTH + 1):
        yield Metric(
            f"rollout/acceptance_position_{position}_fraction",
            "1",
            f"Share of verification rounds in which the drafted token at position {position} was accepted.",
            "pooled",
            "engine",
        )
    yield Metric("rollout/draft_length_tokens", "tokens", "Mean draft length k.", "pooled", "engine")
    yield Metric("rollout/num_drafts", "1", "Verification rounds, counted per sequence.", "sum", "engine")
    yield Metric("rollout/num_draft_tokens", "tokens", "Drafted tokens.", "sum", "engine")
    yield Metric("rollout/num_accepted_tokens", "tokens", "Drafted tokens that were accepted.", "sum", "engine")
    yield Metric("rollout/num_generated_tokens", "tokens", "Response tokens of the step.", "sum", "engine")
    yield Metric(
        "rollout/tokens_per_second",
        "tokens/s",
        "Response tokens per second of generation.",
        "pooled",
        "engine",
    )
    for name, reduction in (("mean", "mean"), ("max", "max"), ("min", "min")):
        yield Metric(
            f"rollout/response_length_{name}_tokens",
            "tokens",
            f"{name.capitalize()} response length of the step.",
            reduction,  # type: ignore[arg-type]
            "engine",
        )
    yield Metric("rollout/truncated_fraction", "1", "Share of responses cut at max_new_tokens.", "mean", "engine")


def controller() -> Iterator[Metric]:
    """Draft lengths as they were chosen."""
    yield Metric(
        "controller/draft_length_mean_tokens",
        "tokens",
        "Mean draft length k over all rounds of the step, those without a draft counted as 0.",
        "pooled",
        "engine",
    )
    for exponent in range(MAX_SEQUENCES_EXPONENT + 1):
        yield Metric(
            f"controller/draft_length_sequences_{2**exponent}_tokens",
            "tokens",
            f"The same over rounds of {2**exponent} sequences"
            + (f" at most, and more than {2 ** (exponent - 1)}." if exponent else "."),
            "pooled",
            "engine",
        )
    yield Metric(
        "controller/speculated_round_fraction",
        "1",
        "Share of the step's rounds that had a draft.",
        "pooled",
        "engine",
    )
    yield Metric("controller/round_s", "s", "Mean wall time of a round.", "pooled", "engine")
    yield Metric(
        "controller/predicted_round_s",
        "s",
        "What the controller expected of the same rounds by its cost table.",
        "pooled",
        "engine",
    )


def speedup() -> Iterator[Metric]:
    """Measured by the probe."""
    yield Metric(
        "speedup/generation_ratio",
        "1",
        "Measured time of autoregressive over speculative generation of the same prompts, per token.",
        "pooled",
        "probe",
    )
    yield Metric("speedup/generation_low_ratio", "1", "Lower end of the speedup's 95 % interval.", "last", "probe")
    yield Metric("speedup/generation_high_ratio", "1", "Upper end of the speedup's 95 % interval.", "last", "probe")
    yield Metric(
        "speedup/step_ratio",
        "1",
        "Step time had the run not speculated (generation autoregressive, no draft training), over step time as it "
        "ran; probe, validation and checkpoint left out.",
        "last",
        "probe",
    )
    yield Metric(
        "speedup/bound_ratio",
        "1",
        "Bound on the step speedup, 1 / (R / alpha + 1 - R), with R the share of generation in a step that does not "
        "speculate (generation autoregressive, no draft training) and alpha the acceptance length.",
        "last",
        "probe",
    )
