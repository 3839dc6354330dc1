import io
import json
from typing import Any

import pytest
from rich.console import Console

from cli import output
from cli.errors import CommandError
from foredeck import Problem
from foredeck.models import Alarm, LogLine, Run, RunSummary


def _text(renderable: object) -> str:
    console = Console(file=io.StringIO(), width=160)
    console.print(renderable)
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


@pytest.mark.parametrize(
    ("seconds", "text"), [(None, "-"), (0.4, "0 s"), (59.6, "1 min 00 s"), (3600, "1 h 00 min"), (5000, "1 h 23 min")]
)
def test_durations(seconds: float | None, text: str) -> None:
    assert output.duration(seconds) == text


def test_numbers_have_three_digits_and_gaps_are_dashes() -> None:
    assert output.number(3.14159, "x") == "3.14x"
    assert output.number(None, "x") == "-"
    assert output.percent(0.853) == "85 %"


def test_a_run_shows_its_figures_and_attempts(run_body: dict[str, Any]) -> None:
    attempts = [{"number": 1, "outcome": "crashed", "error": "actor lost"}, {"number": 2, "resumed_from_step": 5}]
    text = _text(output.run_table(Run.model_validate(run_body | {"attempts": attempts})))
    for part in ("eagle3 k=3", "7/40, now generation", "0.5", "3.25", "crashed: actor lost", "going on from step 5"):
        assert part in text


def test_a_run_says_what_came_of_its_gates(run_body: dict[str, Any]) -> None:
    assert "Gates" not in _text(output.run_table(Run.model_validate(run_body | {"gates_verdict": None})))
    assert "failed: `foredeck gate" in _text(
        output.run_table(Run.model_validate(run_body | {"gates_verdict": "failed"}))
    )


def test_a_list_shows_short_ids_and_markup_in_names_as_it_is(run_body: dict[str, Any]) -> None:
    text = _text(output.runs_table([RunSummary.model_validate(run_body | {"name": "[red]x[/red]"})]))
    assert "11111111" in text
    assert "[red]x[/red]" in text


def alarm(**changes: object) -> Alarm:
    words = {
        "name": "no_speedup",
        "title": "No speedup",
        "meaning": "It is slower.",
        "what_to_do": "Set it to measured.",
    }
    return Alarm.model_validate(words | {"is_active": True, "step": 12, "message": "Speedup\x1b 0.91."} | changes)


def test_an_active_alarm_says_since_when_and_what_to_do(run_body: dict[str, Any]) -> None:
    run = Run.model_validate(run_body | {"num_active_alarms": 1})
    text = _text(output.run_table(run, [alarm(), alarm(is_active=False, ending="cleared", ended_step=15)]))
    assert r"No speedup since step 12: Speedup\x1b 0.91." in text
    assert "It is slower." in text
    assert "Set it to measured." in text
    assert "No speedup at step 12, cleared at step 15" in text


def test_without_its_alarms_a_run_says_how_many_and_where_to_look(run_body: dict[str, Any]) -> None:
    text = _text(output.run_table(Run.model_validate(run_body | {"num_active_alarms": 2})))
    assert f"2 active: `foredeck show {run_body['id']}`" in text
    assert "Alarm" not in _text(output.run_table(Run.model_validate(run_body)))


def test_the_list_marks_alarms_and_jobs_without_steps(run_body: dict[str, Any]) -> None:
    runs = [{"num_active_alarms": 2}, {"job": "draft_training", "num_steps": 0, "step": 0}]
    text = _text(output.runs_table([RunSummary.model_validate(run_body | changes) for changes in runs]))
    assert "running  2 alarms" in text
    assert "draft training" in text


def test_draft_training_shows_what_the_draft_is_worth_and_where_it_lies(run_body: dict[str, Any]) -> None:
    area = "draft_pretraining/held_out_acceptance"
    latest = {f"{area}_length_tokens": 2.75, f"{area}_position_1_fraction": 0.8, f"{area}_position_2_fraction": 0.6}
    changes = {"job": "draft_training", "num_steps": 0, "latest": latest, "last_checkpoint_path": "/d/[1]"}
    text = _text(output.run_table(Run.model_validate(run_body | changes)))
    assert "Reward" not in text
    for part in ("2.75", "80 %, 60 % by position", "/d/[1]", "draft training, now generation"):
        assert part in text


def test_log_lines_cannot_drive_the_terminal() -> None:
    line = LogLine.model_validate(
        {
            "id": 1,
            "attempt": 1,
            "emitter": "d/0",
            "time": "2026-01-01T00:00:00Z",
            "level": "info",
            "message": "a\x1b[2Jb\tc",
        }
    )
    plain = output.log_text(line).plain
    assert "\x1b" not in plain
    assert r"a\x1b[2Jb" in plain


def test_problems_name_field_value_and_mend(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    errors = [{"pointer": "/config/policy/hidden_size", "detail": "must be a multiple of 8", "value": 3}]
    stream = io.StringIO()
    monkeypatch.setattr(output, "errors", Console(file=stream, width=160))
    problem = Problem.model_validate({"detail": "x", "errors": errors})
    output.print_error(CommandError("x", problem=problem))
    assert "config.policy.hidden_size = 3: must be a multiple of 8" in stream.getvalue()
    output.print_error(CommandError("x", problem=problem), is_json=True)
    assert json.loads(capsys.readouterr().out)["problem"]["errors"] == [errors[0] | {"parameter": None}]
