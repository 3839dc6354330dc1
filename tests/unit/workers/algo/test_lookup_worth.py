from itertools import pairwise

import pytest

from workers.algo.lookup_worth import LookupWorth

SHARE = 0.01


def run(worth, num_rounds, tokens, lookup_time, round_time, *, number=8, backlog=0.0):
    """Rounds one by one; whether each looked, and what all of them together took, in rounds without lookups. A lookup
    after one without takes the backlog too."""
    looked, lost, before = [], 0.0, True
    for _ in range(num_rounds):
        worth.pass_rounds(number, 1)
        is_awake = worth.is_awake(number, is_fresh=False)
        if is_awake:
            taken = lookup_time + (0.0 if before else backlog)
            worth.observe(number, tokens, [taken], round_time)
            lost += taken + round_time - tokens
        looked.append(is_awake)
        before = is_awake
    return looked, lost


def test_lookups_that_pay_go_on():
    worth = LookupWorth(SHARE)
    looked, _ = run(worth, 100, tokens=1.5, lookup_time=0.1, round_time=1.2)
    assert all(looked)
    assert worth.gain(8) == pytest.approx(1.5 / 1.3)


@pytest.mark.parametrize("backlog", [0.0, 10.0])
def test_what_trials_of_worthless_lookups_lose_is_bound(backlog):
    worth = LookupWorth(SHARE)
    run(worth, 100, tokens=1.0, lookup_time=0.1, round_time=1.0)
    looked, lost = run(worth, 20_000, tokens=1.0, lookup_time=0.2, round_time=1.0, backlog=backlog)
    assert 0 < lost < 1.2 * SHARE * 20_000
    assert 10 < sum(looked) < 1100
    assert worth.gain(8) == 1


def test_lookups_that_have_become_worth_it_are_found_out():
    worth = LookupWorth(SHARE)
    run(worth, 1000, tokens=1.0, lookup_time=0.1, round_time=1.0)
    looked, _ = run(worth, 1000, tokens=2.0, lookup_time=0.1, round_time=1.3)
    assert all(looked[500:])


def test_an_interrupted_lookup_does_not_put_off_the_next_trial():
    worth = LookupWorth(SHARE)
    run(worth, 1000, tokens=1.0, lookup_time=0.1, round_time=1.0)
    for _ in range(2000):
        worth.pass_rounds(8, 1)
    assert worth.is_awake(8, is_fresh=True)
    worth.observe(8, 1.0, [0.1, 0.1, 50.0, 0.1], 1.0)
    looked, _ = run(worth, 400, tokens=1.0, lookup_time=0.1, round_time=1.0)
    assert any(looked)


def test_with_nothing_to_catch_up_with_a_trial_is_cheaper():
    worth = LookupWorth(SHARE)
    run(worth, 1000, tokens=1.0, lookup_time=0.1, round_time=1.0)
    while not worth.is_awake(8, is_fresh=False):
        worth.pass_rounds(8, 1)
    for taken in (10.0, 0.1, 0.1, 0.1):  # a trial
        worth.observe(8, 1.0, [taken], 1.0)
    for _ in range(10 * 100):
        worth.pass_rounds(8, 1)
    for _ in range(100):
        assert not worth.is_awake(8, is_fresh=False)
        worth.pass_rounds(8, 1)
    assert not worth.is_awake(8, is_fresh=False)
    assert worth.is_awake(8, is_fresh=True)


def test_numbers_of_sequences_are_judged_apart():
    worth = LookupWorth(SHARE)
    run(worth, 100, tokens=1.0, lookup_time=0.2, round_time=1.0, number=64)
    run(worth, 100, tokens=1.5, lookup_time=0.2, round_time=1.0, number=2)
    assert not worth.is_awake(64, is_fresh=False)
    assert worth.is_awake(2, is_fresh=False)


def test_trials_that_fail_come_later_and_later_until_one_succeeds():
    worth = LookupWorth(SHARE)
    looked, _ = run(worth, 4000, tokens=1.0, lookup_time=0.01, round_time=1.0)
    begins = [i for i in range(1, 4000) if looked[i] and not looked[i - 1]]
    waits = [later - earlier for earlier, later in pairwise(begins)]
    assert waits == sorted(waits)
    assert waits[0] < 60
    assert 95 < waits[-1] < 110
    run(worth, 500, tokens=2.0, lookup_time=0.01, round_time=1.0)
    looked, _ = run(worth, 400, tokens=1.0, lookup_time=0.01, round_time=1.0)
    assert looked[0]
    assert len([i for i in range(1, 400) if looked[i] and not looked[i - 1]]) > 1


def test_lookups_that_pay_for_many_sequences_are_tried_sooner_for_fewer():
    def rounds_until_looked(is_worth_it_for_more):
        worth = LookupWorth(SHARE)
        run(worth, 2000, tokens=1.0, lookup_time=0.2, round_time=1.0)
        if is_worth_it_for_more:
            run(worth, 100, tokens=2.0, lookup_time=0.1, round_time=1.2, number=16)
        looked, _ = run(worth, 300, tokens=2.0, lookup_time=0.1, round_time=1.2)
        return looked.index(True)

    assert rounds_until_looked(True) < 0.5 * rounds_until_looked(False)
