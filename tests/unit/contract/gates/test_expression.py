import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.gates.assertion import AlarmFree, Comparison, Limit, Window, needs_baseline
from contract.gates.expression import MAX_NESTING, parse
from contract.gates.tokens import MAX_LENGTH, GateSyntaxError
from contract.telemetry.alarms import AlarmName
from contract.telemetry.metrics import METRICS

WORDS = [
    *("reward", "acceptance_length", "rollout/num_drafts", "baseline", "no", "alarms", "median", "over", "last"),
    *("steps", "step", ">=", "<=", ">", "<", "+", "-", "*", "(", ")", "..", "1", "0.5", "1e3", "1e999", "x", "=", "²"),
]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("acceptance_length >= 2.8", Comparison("acceptance_length", "mean", ">=", Limit(2.8), Window())),
        ("lossless_ks<=.01", Comparison("lossless_ks", "last", "<=", Limit(0.01), Window())),
        ("lossless_evidence < 2", Comparison("lossless_evidence", "max", "<", Limit(2.0), Window())),
        (
            "median( reward ) > baseline - 0.02 over last 20 steps",
            Comparison("reward", "median", ">", Limit(-0.02, 1.0), Window(num_last=20)),
        ),
        (
            "step_time ≤ 1.05 * baseline over steps 10..60",
            Comparison("step_time", "mean", "<=", Limit(0.0, 1.05), Window(first=10, last=60)),
        ),
        (
            "time/step_s <= 2*(baseline + 1) - -3 over last 1 step",
            Comparison("time/step_s", "mean", "<=", Limit(5.0, 2.0), Window(num_last=1)),
        ),
        ("no alarms", AlarmFree(None, Window())),
        ("no draft_decay over steps 1..3", AlarmFree(AlarmName.DRAFT_DECAY, Window(first=1, last=3))),
    ],
)
def test_assertions(text, expected):
    assert parse(text) == expected


def test_every_metric_of_the_catalogue_can_be_asserted():
    assert all(needs_baseline(parse(f"{name} >= baseline")) for name in METRICS)


@pytest.mark.parametrize(
    ("text", "position", "found", "expected"),
    [
        ("", 0, "the end", "a metric"),
        ("1 <= reward", 0, "1", "a metric"),
        ("acceptence_length >= 1", 0, "acceptence_length", "perhaps acceptance_length"),
        ("Reward >= 1", 0, "Reward", "perhaps reward"),
        ("rollout/acceptance_lenght_tokens > 1", 0, "rollout", "perhaps rollout/acceptance_length_tokens"),
        ("average(reward) > 1", 0, "average", "one of mean, median"),
        ("reward", 6, "the end", ">="),
        ("reward == 3", 7, "=", ">="),
        ("reward >= 60%", 12, "%", "a number"),
        ("reward >= baseline * baseline", 19, "baseline times baseline", "times a number"),
        ("reward >= (1", 12, "the end", ")"),
        ("reward >= 1 2", 12, "2", "over last N steps"),
        ("reward >= 1 <= 2", 12, "<=", "second gate"),
        ("reward >= 1 over", 16, "the end", "steps A..B"),
        ("reward >= 1 over last 0 steps", 22, "0", "from 1"),
        ("reward >= 1 over last 2.5 steps", 22, "2.5", "from 1"),
        ("reward >= 1 over last 20", 24, "the end", "`steps`"),
        ("reward >= 1 over steps 10..5", 27, "5", "from 10"),
        ("reward >= 1e999", 10, "beyond all bounds", "1e+30"),
        ("reward >= 1e31", 10, "beyond all bounds", "1e+30"),
        ("reward >= 0 * 1e999", 10, "beyond all bounds", "1e+30"),
        ("no drift", 3, "drift", "distribution_drift"),
        ("reward >= 1\n", 11, r"'\n'", "a number"),
        ("reward >= 1; import os", 11, ";", "a number"),
    ],
)
def test_an_error_says_where_what_was_found_and_what_would_fit(text, position, found, expected):
    with pytest.raises(GateSyntaxError) as caught:
        parse(text)
    assert caught.value.position == position
    assert found in caught.value.found
    assert expected in str(caught.value)
    assert str(caught.value).startswith(f"at character {position + 1}: ")


def test_length_and_nesting_are_limited():
    assert parse(f"reward >= {'(' * MAX_NESTING}1{')' * MAX_NESTING}")
    with pytest.raises(GateSyntaxError, match="levels"):
        parse(f"reward >= {'(' * (MAX_NESTING + 1)}1{')' * (MAX_NESTING + 1)}")
    with pytest.raises(GateSyntaxError, match="levels"):
        parse(f"reward >= {'-' * (MAX_NESTING + 1)}1")
    assert parse(f"reward >= 1{' ' * (MAX_LENGTH - 11)}")
    with pytest.raises(GateSyntaxError, match="at most"):
        parse(f"reward >= 1{' ' * (MAX_LENGTH - 10)}")


def _parsed_or_refused(text):
    try:
        return parse(text)
    except GateSyntaxError as error:
        return error


@given(st.one_of(st.text(max_size=500), st.lists(st.sampled_from(WORDS), max_size=60).map(" ".join)))
def test_whatever_is_written_is_an_assertion_or_a_syntax_error_and_soon(text):
    started = time.process_time()
    parsed = _parsed_or_refused(text)
    assert isinstance(parsed, Comparison | AlarmFree | GateSyntaxError)
    if isinstance(parsed, GateSyntaxError):
        assert 0 <= parsed.position <= len(text)
        assert str(parsed).isprintable()
    assert time.process_time() - started < 1


@given(st.from_regex(r"[-+*() 0-9.]{1,60}", fullmatch=True))
def test_the_limit_is_what_arithmetic_says(text):
    """Against Python's own arithmetic, for texts that both take."""
    try:
        parsed = parse(f"reward >= {text}")
    except GateSyntaxError:
        return
    try:
        value = eval(text, {"__builtins__": {}})
    except SyntaxError:  # 007
        return
    assert isinstance(parsed, Comparison)
    assert parsed.limit.constant == pytest.approx(value, rel=1e-9, abs=1e-9)
