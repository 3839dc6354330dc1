import itertools
import subprocess
import sys
from typing import Any

import pytest

from backend.errors import ApiError
from backend.figures import service
from backend.figures.catalogue import CHARTS
from backend.figures.palette import PALETTE, SEQUENCE
from contract.telemetry.metrics import METRICS
from contract.telemetry.stages import STEP_STAGES

NAMES = {
    "reward_failures",
    *("reward", "acceptance_length", "acceptance_positions", "step_time", "speedup", "response_length"),
    *("policy_health_kl", "policy_health_entropy", "clip_fraction", "grad_norm", "mismatch", "losslessness"),
    *("draft_loss", "warm_up", "draft_length", "speculated_rounds", "round_time", "evidence", "acceptance_test"),
    *("draft_pretraining", "held_out_acceptance", "weight_sync"),
    *("throughput", "mfu", "cpu", "memory", "gpu_utilization", "gpu_memory", "gpu_power", "engine_load"),
}
SET_UP_AXES = {
    "warm_up": {"warm_up_step", "draft_pretraining_step"},
    "draft_pretraining": {"draft_pretraining_step"},
    "held_out_acceptance": {"draft_pretraining_step"},
}


def test_every_chart_is_there_with_words() -> None:
    figures = service.list_figures().figures
    assert {figure.name for figure in figures} == NAMES
    assert all(figure.title and figure.group and figure.description.endswith(".") for figure in figures)
    assert all(service.template(name)["layout"]["meta"]["empty"].endswith(".") for name in NAMES)


@pytest.mark.parametrize("name", CHARTS)
def test_traces_show_declared_series_of_one_axis(name: str) -> None:
    figure = next(figure for figure in service.list_figures().figures if figure.name == name)
    assert figure.series
    axes = {METRICS[series].axis for series in figure.series}
    assert axes == SET_UP_AXES.get(name, {"step"})


@pytest.mark.parametrize("name", CHARTS)
def test_template_sits_on_light_and_dark(name: str) -> None:
    layout = service.template(name)["layout"]
    assert layout["paper_bgcolor"] == layout["plot_bgcolor"] == "rgba(0,0,0,0)"
    assert layout["uirevision"] == "keep"
    assert layout["hovermode"] == "x unified"
    assert "template" not in layout
    assert not list(_fonts(service.template(name))), "a text colour would vanish on one of the two"


def _fonts(node: Any) -> Any:
    if isinstance(node, dict):
        yield from (value for key, value in node.items() if "font" in key)
        node = list(node.values())
    if isinstance(node, list):
        for child in node:
            yield from _fonts(child)


@pytest.mark.parametrize("name", CHARTS)
def test_bands_are_pairs_and_main_traces_have_names(name: str) -> None:
    traces = service.template(name)["data"]
    for before, trace in itertools.pairwise(traces):
        if trace.get("fill") == "tonexty":
            assert before["line"]["width"] == 0
            assert not before["meta"]["is_main"]
    assert all("name" in trace for trace in traces if trace["meta"]["is_main"])
    assert any(trace["meta"]["is_main"] for trace in traces)


def test_stacked_stages_cover_the_step() -> None:
    stacked = {trace["meta"]["series"] for trace in service.template("step_time")["data"] if "yaxis" not in trace}
    assert stacked == {f"time/{stage}_s" for stage in STEP_STAGES} | {"time/other_s"}


def test_a_stage_has_one_colour_on_every_chart() -> None:
    assert len({PALETTE[stage.value] for stage in STEP_STAGES}) == len(STEP_STAGES)
    answer = service.list_figures()
    assert (answer.palette, answer.run_colors) == (PALETTE, SEQUENCE)
    bars = {trace["name"]: trace["marker"]["color"] for trace in service.template("step_time")["data"]}
    assert bars["generation"] == PALETTE["speedup_generation"] == PALETTE["generation"]


def test_unknown_figure_is_a_404() -> None:
    with pytest.raises(ApiError, match="no figure nonsense") as caught:
        service.template("nonsense")
    assert caught.value.status == 404


def test_importing_the_routes_does_not_import_plotly() -> None:
    code = "import sys, backend.figures.routes; sys.exit('plotly' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
