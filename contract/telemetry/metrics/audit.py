"""Whether samples are the policy's."""

from collections.abc import Iterator

from contract.telemetry.metrics.metric import Metric


def audit() -> Iterator[Metric]:
    """See docs/concepts/audit.md."""
    for kind, tokens, means in (
        ("ks", "lossless/num_tokens", "the step's randomised probability integral transforms"),
        ("ordered_ks", "lossless/num_tested_drafts", "the same where a draft was tested, ordered by draft over policy"),
    ):
        yield Metric(
            f"lossless/{kind}_distance", "1", f"Kolmogorov-Smirnov distance from uniform of {means}.", "last", "trainer"
        )
        yield Metric(
            f"lossless/{kind}_p_value",
            "1",
            "Chance of that distance or a larger one under exact sampling.",
            "last",
            "trainer",
        )
        yield Metric(tokens, "tokens", "Tokens behind that distance.", "sum", "trainer")
    yield Metric(
        "lossless/acceptance_gap_fraction",
        "1",
        "Accepted drafts less their chances of it, min(1, policy / draft probability), per tested draft.",
        "mean",
        "trainer",
    )
    yield Metric(
        "lossless/acceptance_z_score",
        "1",
        "The same sum in standard deviations: standard normal where the acceptance rule is exact.",
        "last",
        "trainer",
    )
    for name, means in (
        ("", "Evidence against exact sampling over the whole run so far, all three tests together"),
        ("pit_", "The part of it that the transforms of all tokens give"),
        ("ordered_pit_", "The part of it that the transforms ordered by draft over policy give"),
        ("acceptance_", "The part of it that acceptances against their chances give"),
    ):
        yield Metric(
            f"lossless/{name}log10_e_value",
            "1",
            f"{means}, log10 of the e-value: exact sampling ever reaches 2 with a chance of 1 % at most.",
            "last",
            "loop",
        )
    yield Metric(
        "lossless/run_ks_distance",
        "1",
        "Kolmogorov-Smirnov distance of all steps so far together, in 32 bins; begins anew where a drift is over.",
        "last",
        "loop",
    )
    yield Metric(
        "lossless/num_excluded_tokens",
        "tokens",
        "Tested tokens that the trainer's truncated distribution gives no probability.",
        "sum",
        "trainer",
    )
    yield Metric(
        "lossless/num_count_violations",
        "1",
        "Counting identities that did not hold, such as emitted = accepted + corrections + bonuses; 0 unless broken.",
        "sum",
        "loop",
    )
