import pytest

from contract.telemetry.metrics import METRICS
from contract.telemetry.stages import STEP_STAGES, Stage
from workers.clock import StageClock


class _Time:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def test_parts_add_up_to_the_step_and_stages_entered_again_add_up():
    time, entered = _Time(), []
    clock = StageClock(entered.append, time)
    for stage, inside, after in ((Stage.PREPARE, 1, 0.25), (Stage.TRAIN, 4, 0.5), (Stage.PREPARE, 2, 0)):
        with clock.stage(stage):
            time.now += inside
        time.now += after
    metrics = clock.metrics()
    ran = {"time/prepare_s": 3, "time/train_s": 4, "time/other_s": 0.75, "time/step_s": 7.75}
    assert metrics == {f"time/{stage.value}_s": 0 for stage in STEP_STAGES} | ran
    assert metrics.keys() <= METRICS.keys()
    assert entered == [Stage.PREPARE, Stage.TRAIN, Stage.PREPARE]
    assert clock.seconds(Stage.GENERATION) == 0


def test_stages_do_not_nest():
    clock = StageClock(lambda stage: None)
    with (
        clock.stage(Stage.TRAIN),
        pytest.raises(ValueError, match="draft begins inside stage train"),
        clock.stage(Stage.DRAFT),
    ):
        pass


def test_a_stage_that_is_refused_does_not_run():
    def refuse(stage):
        raise InterruptedError(stage)

    clock = StageClock(refuse)
    with pytest.raises(InterruptedError), clock.stage(Stage.TRAIN):
        raise AssertionError("ran")
    assert clock.metrics()["time/train_s"] == 0
