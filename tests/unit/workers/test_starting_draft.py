"""What a starting draft is taken for worth; tests/integration/workers trains and measures real ones."""

import json

import pytest

from contract.config import RunConfig
from contract.config.drafter import MtpDrafter
from contract.telemetry.metrics import METRICS
from workers.data.open_task import open_task
from workers.data.tokenizer import character_tokenizer
from workers.rollout.engine import RolloutResult, SpeculationCounters
from workers.starting_draft import NUM_HELD_OUT, StartingDraft, held_out_metrics
from workers.train.draft_pretraining import HELD_OUT_FILE

AREA = "draft_pretraining/held_out_acceptance"
EXPECTED = {"draft_pretraining/held_out_expected_acceptance_length_tokens": 3.5}


def test_hand_computed_held_out_acceptance():
    """Ten drafts of two tokens: eight had the first accepted, five both."""
    counters = SpeculationCounters(10, 20, 13, [8, 5, *[0] * 14])
    metrics = held_out_metrics(counters, 2)
    assert metrics == {
        f"{AREA}_length_tokens": pytest.approx(2.3),
        f"{AREA}_position_1_fraction": pytest.approx(0.8),
        f"{AREA}_position_2_fraction": pytest.approx(0.5),
    }
    assert metrics.keys() <= METRICS.keys()
    assert held_out_metrics(SpeculationCounters(), 2) == {}


class _Engines:
    """Engines that tell which configurations they were built for."""

    def __init__(self):
        self.built, self.num_prompts = [], []

    def build(self, config, policy, draft):
        self.built.append(config.drafter)

    def generate(self, prompts, num_samples, params, *, speculate=True):
        assert speculate
        self.num_prompts.append(len(prompts))
        return RolloutResult([], SpeculationCounters(4, 4, 2, [2, *[0] * 15]), 0.1)


class _Report:
    def __init__(self):
        self.reporter, self.said = self, []

    def enter(self, stage, fraction):
        pass

    def metrics(self, step, values):
        self.said.append((step, values))


@pytest.fixture
def folder(tmp_path):
    character_tokenizer().save(tmp_path)
    (tmp_path / HELD_OUT_FILE).write_text(json.dumps({"expected": EXPECTED, "measured": {}}))
    return tmp_path


def measure(folder, engines, **drafter):
    config = RunConfig(drafter=MtpDrafter(draft_length_control="measured", **drafter))
    report = _Report()
    StartingDraft(config, open_task(config), folder, None, engines, None).measure(folder, folder, report)
    return report.said


def test_a_draft_is_measured_once_for_each_draft_length_at_that_very_length(folder):
    engines = _Engines()
    first, again = (measure(folder, engines, draft_length=1) for _ in range(2))
    assert first == again
    ((step, values),) = first
    assert step == 120
    assert values == EXPECTED | {f"{AREA}_length_tokens": 1.5, f"{AREA}_position_1_fraction": 0.5}
    assert [(built.draft_length, built.draft_length_control) for built in engines.built] == [(1, "fixed")]
    assert engines.num_prompts == [NUM_HELD_OUT]
    measure(folder, engines, draft_length=2)
    assert len(engines.built) == 2


def test_a_draft_that_was_given_is_not_measured(folder):
    engines = _Engines()
    assert measure(folder, engines, path="/models/draft") == []
    assert engines.built == []
