"""Is the hardware busy, and how much of it counts? Charts of throughput, machines and GPUs."""

from typing import Any

from backend.figures.elements import Chart, Trace, chart_figure, line, right_axis
from backend.figures.palette import PALETTE, SEQUENCE
from contract.telemetry.metrics import MAX_GPUS, MAX_NODES

AFTER_STEP_1 = "Appears after the first step."
WITH_GPUS = "Appears after the first step on machines with NVIDIA GPUs."
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash")


def hardware() -> list[Chart]:
    """Charts of the group Hardware."""
    return [_throughput(), _mfu(), _cpu(), _memory(), _gpu_utilization(), _gpu_memory(), _gpu_power()]


def _throughput() -> Chart:
    traces = [
        line(f"throughput/{stage}_tokens_per_device_second", stage, PALETTE[color])
        for stage, color in (
            ("generation", "generation"),
            ("logprob", "logprob"),
            ("train", "train"),
            ("step", "reference"),
        )
    ]
    return Chart(
        "throughput",
        "Tokens per second and device",
        "Hardware",
        "By stage, over the devices of that stage: GPUs, or processes where the run takes none. Generation and the "
        "whole step count response tokens, the others prompts too.",
        AFTER_STEP_1,
        chart_figure(traces, "tokens per second", yaxis={"rangemode": "tozero"}),
    )


def _mfu() -> Chart:
    traces = [
        line(f"throughput/{stage}_mfu_fraction", stage, PALETTE[stage], meta={"factor": 100})
        for stage in ("generation", "logprob", "train")
    ]
    return Chart(
        "mfu",
        "Model FLOPs utilisation, % of the peak",
        "Hardware",
        "Operations that the tokens need over what the GPUs could do in bfloat16. Rejected drafts, padding and "
        "recomputed activations do not count.",
        WITH_GPUS,
        chart_figure(traces, "% of the peak", yaxis={"rangemode": "tozero"}),
    )


def _cpu() -> Chart:
    return Chart(
        "cpu",
        "CPU time in use by machine, %",
        "Hardware",
        "Mean over the step, of all processes of the machine.",
        AFTER_STEP_1,
        chart_figure(_each("hardware/node_{}_cpu_fraction", "machine", MAX_NODES, 100), "%", yaxis={"range": [0, 105]}),
    )


def _memory() -> Chart:
    return Chart(
        "memory",
        "Main memory in use by machine, GiB",
        "Hardware",
        "The most within the step, of all processes of the machine.",
        AFTER_STEP_1,
        chart_figure(_each("hardware/node_{}_memory_gib", "machine", MAX_NODES), "GiB", yaxis={"rangemode": "tozero"}),
    )


def _gpu_utilization() -> Chart:
    traces = [
        *_each("hardware/gpu_{}_utilization_fraction", "GPU", MAX_GPUS, 100),
        _of_all("hardware/gpu_utilization_mean_fraction", "mean of all", meta={"factor": 100}),
    ]
    return Chart(
        "gpu_utilization",
        "GPU time in use, %",
        "Hardware",
        "Share of the step in which a kernel ran, by GPU. A busy GPU need not be a well-used one: see model FLOPs "
        "utilisation.",
        WITH_GPUS,
        chart_figure(traces, "%", yaxis={"range": [0, 105]}),
    )


def _gpu_memory() -> Chart:
    traces = [
        *_each("hardware/gpu_{}_memory_gib", "GPU", MAX_GPUS),
        _of_all("hardware/gpu_memory_max_gib", "fullest"),
    ]
    return Chart(
        "gpu_memory",
        "GPU memory in use, GiB",
        "Hardware",
        "The most within the step, by GPU.",
        WITH_GPUS,
        chart_figure(traces, "GiB", yaxis={"rangemode": "tozero"}),
    )


def _gpu_power() -> Chart:
    traces = [
        *_each("hardware/gpu_{}_power_w", "GPU", MAX_GPUS),
        _of_all("hardware/gpu_power_w", "all together", yaxis="y2"),
    ]
    return Chart(
        "gpu_power",
        "Power of the GPUs, W",
        "Hardware",
        "Mean over the step.",
        WITH_GPUS,
        chart_figure(
            traces,
            "W, each",
            yaxis={"rangemode": "tozero"},
            yaxis2=right_axis("W, all together", rangemode="tozero"),
        ),
    )


def _of_all(series: str, name: str, **more: Any) -> Trace:
    """What the devices come to: drawn over their lines, named before them."""
    return line(series, name, PALETTE["reference"], line={"width": 2.5}, legendrank=1, **more)


def _each(series: str, noun: str, count: int, factor: float = 1) -> list[Trace]:
    """A thin line for each machine or GPU."""
    return [
        line(
            series.format(index),
            f"{noun} {index}",
            SEQUENCE[index % len(SEQUENCE)],
            line={"width": 1.25, "dash": _DASHES[index // len(SEQUENCE)]},
            meta={"factor": factor} if factor != 1 else {},
        )
        for index in range(count)
    ]
