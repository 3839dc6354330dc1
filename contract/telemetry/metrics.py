"""The catalogue of metrics: what each name means, in which unit, how it is reduced and where it comes from.

A worker may only send names declared here, so that a chart never waits for a metric that was renamed.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from contract.telemetry.stages import STEP_STAGES

MAX_DRAFT_LENGTH = 16
MAX_SEQUENCES_EXPONENT = 12
"""Rounds are told apart by the sequences decoded together, up to 2 to the power of this."""

MAX_NODES = 32
MAX_GPUS = 32
"""Machines and GPUs with series of their own; what is summed up counts all of them."""

Axis = Literal["step", "warm_up_step", "draft_pretraining_step"]


@dataclass(frozen=True, slots=True)
class Metric:
    """One declared metric."""

    name: str
    """`area/quantity_unit`; a ratio or a share ends in `_ratio` or `_fraction`, a count starts with `num_`."""
    unit: str
    """Symbol for an axis: `s`, `tokens`, `nats`, `1` for a pure number, `%` where a fraction is shown as percent."""
    meaning: str
    """One sentence."""
    reduction: Literal["mean", "sum", "max", "min", "last", "pooled"]
    """How one step's parts became one number. `pooled`: counters were added up before dividing."""
    source: Literal["engine", "trainer", "loop", "reward", "probe", "hardware"]
    """What measured it."""
    axis: Axis = "step"
    """What its step counts."""


def _declare() -> Iterator[Metric]:
    yield from _declare_rewards()
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

    yield Metric("time/step_s", "s", "Wall time of the whole step.", "sum", "loop")
    for stage in STEP_STAGES:
        yield Metric(f"time/{stage.value}_s", "s", f"Wall time of the step's {stage.value} stage.", "sum", "loop")
    yield Metric("time/other_s", "s", "Step time outside every stage.", "sum", "loop")
    yield Metric("progress/num_tokens_total", "tokens", "Response tokens since the run began.", "sum", "loop")
    yield Metric(
        "progress/elapsed_s",
        "s",
        "Time of all steps up to this one, attempts added up.",
        "sum",
        "loop",
    )

    yield Metric(
        "weight_sync/transfer_s", "s", "Wall time in which all engines got the step's weights.", "last", "loop"
    )
    yield Metric(
        "weight_sync/size_bytes", "B", "Bytes of weights that each engine got, the draft's among them.", "sum", "loop"
    )
    yield Metric("weight_sync/num_buckets", "1", "Buckets in which they came.", "sum", "loop")

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
    yield from _declare_audit()

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
    yield from _held_out()


def _declare_rewards() -> Iterator[Metric]:
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


def _held_out() -> Iterator[Metric]:
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


def _declare_audit() -> Iterator[Metric]:
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


def _declare_engine() -> Iterator[Metric]:
    """Of engines with a queue, as vLLM's: one step of the engine is one pass over its running requests."""
    for name, unit, meaning, reduction in (
        ("kv_cache_use_fraction", "1", "Mean share of the KV cache that holds sequences.", "mean"),
        ("kv_cache_use_max_fraction", "1", "The largest share; near 1 requests wait or are taken out again.", "max"),
        ("num_running_requests", "1", "Mean number of sequences decoded together in an engine.", "mean"),
        ("num_waiting_requests", "1", "Mean number of sequences that wait for a place in an engine.", "mean"),
    ):
        yield Metric(f"engine/{name}", unit, meaning, reduction, "engine")  # type: ignore[arg-type]


def _declare_hardware() -> Iterator[Metric]:
    """Means over the step of what psutil and NVML tell each second; see docs/operations/hardware.md."""
    for node in range(MAX_NODES):
        which = f"of machine {node}, counted from 0 in the order of their addresses"
        yield Metric(
            f"hardware/node_{node}_cpu_fraction", "1", f"Share of the CPU time in use {which}.", "mean", "hardware"
        )
        yield Metric(f"hardware/node_{node}_memory_gib", "GiB", f"Main memory in use {which}.", "max", "hardware")
    for gpu in range(MAX_GPUS):
        which = f"of GPU {gpu}, counted from 0 over all machines"
        yield Metric(
            f"hardware/gpu_{gpu}_utilization_fraction",
            "1",
            f"Share of the time in which a kernel ran {which}.",
            "mean",
            "hardware",
        )
        yield Metric(f"hardware/gpu_{gpu}_memory_gib", "GiB", f"Memory in use {which}.", "max", "hardware")
        yield Metric(f"hardware/gpu_{gpu}_power_w", "W", f"Power {which}.", "mean", "hardware")
    for kind in ("mean", "min"):
        yield Metric(
            f"hardware/gpu_utilization_{kind}_fraction",
            "1",
            f"{kind.capitalize()} over all GPUs of the share of the time in which a kernel ran.",
            kind,
            "hardware",
        )
    yield Metric("hardware/gpu_memory_max_gib", "GiB", "Memory in use of the fullest GPU.", "max", "hardware")
    yield Metric("hardware/gpu_power_w", "W", "Power of all GPUs together.", "sum", "hardware")


def _declare_throughput() -> Iterator[Metric]:
    """A device is a GPU of that stage, or a process where the run takes none."""
    every = "Prompt and response tokens"
    for stage, tokens in (("generation", "Response tokens"), ("logprob", every), ("train", every)):
        yield Metric(
            f"throughput/{stage}_tokens_per_device_second",
            "tokens/s",
            f"{tokens} per second of the step's {stage} and device.",
            "pooled",
            "loop",
        )
    yield Metric(
        "throughput/step_tokens_per_device_second",
        "tokens/s",
        "Response tokens per second of the whole step, over all devices of the run.",
        "pooled",
        "loop",
    )
    for stage in ("generation", "logprob", "train"):
        yield Metric(
            f"throughput/{stage}_tflops_per_device",
            "TFLOP/s",
            f"Floating-point operations that the model needs for the step's {stage}, per second and device; those of "
            "rejected drafts and of recomputed activations are not counted.",
            "pooled",
            "loop",
        )
        yield Metric(
            f"throughput/{stage}_mfu_fraction",
            "1",
            "The same over the device's peak in bfloat16 (model FLOPs utilisation); absent where the peak is unknown.",
            "pooled",
            "loop",
        )


METRICS: dict[str, Metric] = {
    metric.name: metric for metric in (*_declare(), *_declare_throughput(), *_declare_engine(), *_declare_hardware())
}
