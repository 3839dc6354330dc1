import math
from dataclasses import replace

import pytest

from workers.audit.rules import DecayRule, MismatchRule, is_collapsed, is_slower
from workers.rollout.engine import SpeculationCounters


def counters(num_drafts, *accepted_at_position):
    positions = list(accepted_at_position)
    return SpeculationCounters(num_drafts, num_drafts * len(positions), sum(positions), positions)


@pytest.mark.parametrize(
    ("given", "is_wrong"),
    [
        (SpeculationCounters(), None),
        (counters(29, 0, 0), None),
        (counters(1000, 0, 0), True),
        (counters(1000, 19, 0), True),
        (counters(1000, 30, 0), None),
        (counters(1000, 60, 0), False),
    ],
)
def test_collapse(given, is_wrong):
    assert is_collapsed(given) is is_wrong


@pytest.mark.parametrize(
    ("ratio", "high", "is_wrong"), [(0.9, 0.99, True), (0.9, 1.01, None), (1.0, 1.2, False), (1.5, 1.7, False)]
)
def test_a_probe_is_certain_or_says_nothing(ratio, high, is_wrong):
    assert is_slower(ratio, high) is is_wrong


def mismatch(*ratios):
    rule = MismatchRule(1.05, 3.0)
    return [rule.judge(ratio) for ratio in ratios], rule


def test_mismatch_has_a_fixed_limit():
    assert mismatch(1.051)[0] == [True]
    assert mismatch(math.nan)[0] == [True]
    assert mismatch(1.03)[0] == [None]
    assert mismatch(1.02)[0] == [False]


def test_mismatch_that_grows_is_wrong_long_before_the_fixed_limit():
    """1 % is usual in bfloat16: 3.2 % is not, and is remembered by nobody; back at 1 % it is right again."""
    verdicts, rule = mismatch(1.010, 1.012, 1.009, 1.032, 1.031, 1.020, 1.010)
    assert verdicts == [False, False, False, True, True, None, False]
    assert rule.usual == pytest.approx([0.010, 0.012, 0.009, 0.010])


def test_in_float32_the_limit_has_a_floor():
    verdicts, rule = mismatch(1.000001, 1.0004, 1.0009, 1.0011)
    assert verdicts == [False, False, None, True]
    assert rule.limit() == pytest.approx(0.001)


def test_mismatch_remembers_the_latest_steps():
    _, rule = mismatch(*[1.01 + step * 1e-5 for step in range(100)])
    assert len(rule.usual) == 20
    assert rule.usual[-1] == pytest.approx(0.01 + 99e-5)


def decay(*rates, num_drafts=1000):
    rule = DecayRule(0.15)
    return [rule.judge(counters(num_drafts, round(rate * num_drafts), 0)) for rate in rates], rule


def test_acceptance_that_falls_slowly_is_wrong_once_it_is_clearly_below_its_best():
    verdicts, rule = decay(*[0.8 - 0.01 * step for step in range(25)])
    first = verdicts.index(True)
    assert 12 < first < 20
    assert set(verdicts[first:]) == {True}
    assert rule.best == pytest.approx(0.8)


def test_a_draft_that_breaks_is_wrong_within_a_few_steps():
    verdicts, _ = decay(0.8, 0.8, 0.8, 0.8, 0.3, 0.3, 0.3)
    assert verdicts[:4] == [False] * 4
    assert True in verdicts[4:6]


def test_it_is_right_again_only_when_it_is_near_its_best():
    verdicts, _ = decay(*[0.8] * 6, *[0.5] * 6, *[0.7] * 15, *[0.8] * 15)
    assert verdicts[11] is True
    assert verdicts[26] is None
    assert verdicts[-1] is False


def test_few_drafts_are_no_fall():
    """With twenty drafts a step, chance alone takes a quarter of the rate away now and then."""
    verdicts, _ = decay(*[0.6, 0.5, 0.75, 0.45] * 30, num_drafts=20)
    assert True not in verdicts
    assert DecayRule(0.15).judge(SpeculationCounters()) is None
    assert DecayRule(0.15).judge(counters(10, 5)) is None


def test_a_draft_that_never_was_what_its_training_expects_is_wrong_from_the_start():
    """0.45 accepted where 0.8 is expected: what the engine drafts with is another draft than the trained one."""
    broken, sound, untrained = DecayRule(0.15), DecayRule(0.15), DecayRule(0.15)
    broken.expected = sound.expected = 0.8
    assert broken.judge(counters(1000, 450, 0)) is True
    assert sound.judge(counters(1000, 700, 0)) is False
    assert untrained.judge(counters(1000, 450, 0)) is False


@pytest.mark.parametrize("make", [lambda: mismatch(1.01, 1.02)[1], lambda: decay(0.8, 0.7)[1]])
def test_state_is_all_there_is(make):
    rule = make()
    assert replace(type(rule)(1.05, 3.0) if isinstance(rule, MismatchRule) else DecayRule(0.15), **rule.state()) == rule
