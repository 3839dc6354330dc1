"""Is it faster, and where does the time go? Charts of speedup, step time and set-up."""

import plotly.graph_objects as go

from backend.figures.elements import (
    LEGEND,
    Chart,
    Trace,
    band,
    chart_figure,
    horizontal,
    line,
    line_with_envelope,
    reference,
    right_axis,
)
from backend.figures.palette import PALETTE, STAGES
from contract.telemetry.metrics import MAX_DRAFT_LENGTH

GENERATION, STEP = PALETTE["speedup_generation"], PALETTE["speedup_step"]
MAX_UNROLL_LENGTH = 8
"""Positions that draft training can look at."""


def speed() -> list[Chart]:
    """Charts of the group Speed."""
    return [_speedup(), _step_time(), _round_time(), _weight_sync(), _engine_load()]


def set_up() -> list[Chart]:
    """Charts of the group Set-up."""
    return [_warm_up(), _draft_pretraining(), _held_out()]


def _speedup() -> Chart:
    low, high = {"series": "speedup/generation_low_ratio"}, {"series": "speedup/generation_high_ratio"}
    traces = [
        *band(low, high, GENERATION, "generation"),
        line("speedup/generation_ratio", "generation", GENERATION, marker={"size": 6}, legendgroup="generation"),
        line("speedup/step_ratio", "step", STEP, marker={"size": 6}),
        reference("speedup/bound_ratio", "bound on step"),
    ]
    return Chart(
        "speedup",
        "Speedup over autoregressive generation",
        "Speed",
        "Measured by generating some prompts both ways on the same engine, with the 95 % interval. Above 1 speculation "
        "pays; the bound is what the acceptance length allows for a whole step.",
        "Appears after the first speedup probe.",
        chart_figure(
            traces,
            "times faster",
            yaxis={"ticksuffix": "x", "autorangeoptions": {"include": [0.9, 1.1]}},
            shapes=[horizontal(1)],
        ),
    )


def _step_time() -> Chart:
    stages: list[Trace] = [
        go.Bar(
            name=stage,
            marker={"color": color, "line": {"width": 0}},
            meta={"series": f"time/{stage}_s", "is_main": stage == "generation"},
        )
        for stage, color in STAGES.items()
    ]
    outline = go.Bar(
        name="AR estimate",
        yaxis="y2",
        width=0.88,  # one step less the gap: probes are steps apart, and a bar would else be as wide as that
        marker={"color": "rgba(0,0,0,0)", "line": {"color": GENERATION, "width": 1.5}},
        meta={"series": "time/generation_s", "times_series": "speedup/generation_ratio", "is_main": False},
    )
    ghost_axis = {"overlaying": "y", "matches": "y", "showticklabels": False, "showgrid": False, "hoverformat": ".3~r"}
    return Chart(
        "step_time",
        "Step time by stage, seconds",
        "Speed",
        "Wall time of each step, stage by stage. The outline is the time that generation alone would have taken "
        "autoregressively, where a probe measured the speedup.",
        "Appears after the first step.",
        chart_figure(
            [*stages, outline],
            "seconds",
            barmode="stack",
            bargap=0.12,
            legend=LEGEND | {"traceorder": "normal", "entrywidth": 76},
            yaxis={"rangemode": "tozero"},
            yaxis2=ghost_axis,
        ),
    )


def _round_time() -> Chart:
    traces = [
        *line_with_envelope("controller/round_s", "measured", GENERATION, meta={"factor": 1000}),
        reference("controller/predicted_round_s", "predicted", factor=1000),
    ]
    return Chart(
        "round_time",
        "Time of a round, milliseconds",
        "Speed",
        "Mean wall time of a round of generation, and what the controller's cost table expected of the same rounds. "
        "Where they part, k is chosen by wrong costs.",
        "Appears after the first step.",
        chart_figure(traces, "milliseconds", yaxis={"rangemode": "tozero"}),
    )


def _weight_sync() -> Chart:
    return Chart(
        "weight_sync",
        "Weight sync, seconds",
        "Speed",
        "Wall time from the trainer's first gathered tensor until every engine has the step's weights. A step cannot "
        "generate meanwhile; buckets that are too small cost it, see weight_sync.bucket_mib.",
        "Appears after the first step.",
        chart_figure(
            line_with_envelope("weight_sync/transfer_s", "all engines", PALETTE["speedup_generation"]),
            "seconds",
            yaxis={"rangemode": "tozero"},
        ),
    )


def _engine_load() -> Chart:
    traces = [
        line("engine/num_running_requests", "running", GENERATION),
        line("engine/num_waiting_requests", "waiting", PALETTE["reference"]),
        line("engine/kv_cache_use_fraction", "KV cache, %", PALETTE["train"], yaxis="y2", meta={"factor": 100}),
    ]
    return Chart(
        "engine_load",
        "Requests of an engine and its KV cache",
        "Speed",
        "Sequences decoded together and those that wait for a place, means over an engine's steps, and the share of "
        "the KV cache in use: where it is full and many wait, more memory for the engine makes generation faster.",
        "Appears after the first step of a run with vLLM engines.",
        chart_figure(
            traces, "requests", yaxis={"rangemode": "tozero"}, yaxis2=right_axis("% of the cache", range=[0, 105])
        ),
    )


def _draft_pretraining() -> Chart:
    expected, held_out = PALETTE["expected"], PALETTE["acceptance"]
    area, big = "draft_pretraining", {"size": 9}
    traces = [
        *line_with_envelope(f"{area}/expected_acceptance_length_tokens", "expected, training batch", expected),
        line(
            f"{area}/held_out_expected_acceptance_length_tokens",
            "expected, held-out",
            expected,
            mode="markers",
            marker=big,
        ),
        line(f"{area}/held_out_acceptance_length_tokens", "measured, held-out", held_out, mode="markers", marker=big),
    ]
    return Chart(
        "draft_pretraining",
        "Acceptance length in draft training, tokens per round",
        "Set-up",
        "What the overlap of draft and policy promises as the draft is trained, and what the trained draft is worth on "
        "prompts that it was not trained on.",
        "Appears while a draft is trained; one taken from the cache or from a folder needs no training.",
        chart_figure(
            traces,
            "tokens per round",
            x_title="step of draft training",
            yaxis={"autorangeoptions": {"include": 1, "minallowed": 1}},
        ),
    )


def _held_out() -> Chart:
    bars = [
        go.Bar(
            name=name,
            marker={"color": color, "line": {"width": 0}},
            meta={
                "last_of": [f"draft_pretraining/{area}_position_{place}_fraction" for place in range(1, number + 1)],
                "factor": 100,
                "is_main": area == "held_out_acceptance",
            },
        )
        for area, number, name, color in (
            ("held_out_acceptance", MAX_DRAFT_LENGTH, "measured", PALETTE["acceptance"]),
            ("held_out_expected_acceptance", MAX_UNROLL_LENGTH, "expected", PALETTE["expected"]),
        )
    ]
    return Chart(
        "held_out_acceptance",
        "Held-out acceptance by draft position, %",
        "Set-up",
        "How much of what a freshly trained draft proposes is accepted on prompts that it was not trained on, measured "
        "in generation and expected from the overlap of draft and policy.",
        "Appears once a draft has been trained.",
        chart_figure(
            bars,
            "% of drafts",
            x_title="draft position",
            xaxis_dtick=1,
            barmode="group",
            bargap=0.3,
            yaxis={"range": [0, 100]},
        ),
    )


def _warm_up() -> Chart:
    traces = [
        *line_with_envelope("warm_up/loss_nats", "policy", PALETTE["warm_up"]),
        *line_with_envelope("draft_pretraining/loss_nats", "draft", PALETTE["draft_loss"]),
    ]
    return Chart(
        "warm_up",
        "Loss of the set-up, nats",
        "Set-up",
        "Supervised warm-up of the policy, then pretraining of the draft on the policy's own rollouts.",
        "Appears during the warm-up; a policy taken from the cache needs none.",
        chart_figure(traces, "nats per token", x_title="set-up step"),
    )
