import pytest

from contract.telemetry.stages import Stage
from workers.set_up_report import SetUpReport
from workers.stopping import StoppedError
from workers.train.progress import SetUpProgress


class _Reporter:
    def __init__(self):
        self.said = []

    def stage(self, stage, step, fraction):
        self.said.append((stage, step, fraction))

    def metrics(self, step, values):
        self.said.append((step, values))


class _Stop:
    def __init__(self, after=99):
        self.left = after

    def check(self):
        self.left -= 1
        if self.left < 0:
            raise StoppedError("the run was asked to stop")


STEPS = [SetUpProgress(step, 4, {"draft_pretraining/loss_nats": 1.0 / step}) for step in (1, 2, 3, 4)]


def test_steps_take_their_part_of_the_stage():
    reporter = _Reporter()
    SetUpReport(reporter, _Stop()).follow(Stage.DRAFT_PRETRAINING, STEPS, 0.2, 0.6)
    fractions = [said[2] for said in reporter.said if len(said) == 3]
    assert fractions == pytest.approx([0.2, 0.3, 0.4, 0.5, 0.6])
    assert reporter.said[-1] == (4, {"draft_pretraining/loss_nats": 0.25})


def test_a_stop_is_seen_between_steps():
    reporter = _Reporter()
    with pytest.raises(StoppedError):
        SetUpReport(reporter, _Stop(after=2)).follow(Stage.WARM_UP, iter(STEPS))
    assert len([said for said in reporter.said if len(said) == 2]) == 1
