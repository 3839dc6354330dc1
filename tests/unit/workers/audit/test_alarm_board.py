import json
import logging

from contract.telemetry.alarms import ALARMS, AlarmName
from workers.audit.alarm_board import AlarmBoard

NAME = AlarmName.NO_SPEEDUP


def test_an_alarm_is_told_of_when_it_is_raised_and_when_it_is_cleared(caplog):
    caplog.set_level(logging.INFO)
    board = AlarmBoard()
    told = [board.judge(step, NAME, wrong, "now") for step, wrong in enumerate([None, True, True, None, False, False])]
    assert [[(alarm.step, alarm.is_raised) for alarm in alarms] for alarms in told] == [
        [],
        [(1, True)],
        [],
        [],
        [(4, False)],
        [],
    ]
    assert told[1][0].message == "now"
    (warning, info) = caplog.records
    assert (warning.levelname, info.levelname) == ("WARNING", "INFO")
    assert ALARMS[NAME].what_to_do in warning.message


def test_what_is_raised_stays_so_in_a_new_attempt():
    board, resumed = AlarmBoard(), AlarmBoard()
    board.judge(1, NAME, True, "")
    resumed.load_state(json.loads(json.dumps(board.state())))
    assert resumed.is_raised(NAME)
    assert not resumed.is_raised(AlarmName.DRAFT_DECAY)
    assert resumed.judge(2, NAME, True, "") == []
