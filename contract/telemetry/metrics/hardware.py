"""Engines, devices and machines."""

from collections.abc import Iterator

from contract.telemetry.metrics.metric import MAX_GPUS, MAX_NODES, Metric


def throughput() -> Iterator[Metric]:
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


def engine() -> Iterator[Metric]:
    """Of engines with a queue, as vLLM's: one step of the engine is one pass over its running requests."""
    for name, unit, meaning, reduction in (
        ("kv_cache_use_fraction", "1", "Mean share of the KV cache that holds sequences.", "mean"),
        ("kv_cache_use_max_fraction", "1", "The largest share; near 1 requests wait or are taken out again.", "max"),
        ("num_running_requests", "1", "Mean number of sequences decoded together in an engine.", "mean"),
        ("num_waiting_requests", "1", "Mean number of sequences that wait for a place in an engine.", "mean"),
    ):
        yield Metric(f"engine/{name}", unit, meaning, reduction, "engine")  # type: ignore[arg-type]


def hardware() -> Iterator[Metric]:
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
