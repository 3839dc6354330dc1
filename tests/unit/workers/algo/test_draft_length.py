import pytest

from workers.algo.draft_length import SWITCHING_GAIN, AcceptanceEstimate, CostTable, DraftLengthController

MAX_LENGTH = 6


def costs(draft_s=0.1, verify_s=0.05, numbers=(1, 2, 4, 8)):
    """A round of n sequences and length k takes 1 + k (draft_s + verify_s n) seconds."""
    return [(n, k, 1 + k * (draft_s + verify_s * n)) for n in numbers for k in range(MAX_LENGTH + 1)]


def controller(**changes):
    return DraftLengthController(MAX_LENGTH, CostTable(costs(**changes), MAX_LENGTH))


def tell(controlled, number, length, chance, rounds=200):
    """Rounds of one length in which each drafted token is accepted with a chance, given all before it."""
    table = CostTable(costs(), MAX_LENGTH)
    for _ in range(rounds):
        accepted = [number * chance ** (i + 1) for i in range(length)]
        controlled.observe(number, length, [number] * length, accepted, table.seconds(number, length))


def best_length(number, chance):
    """By trying all, of the same costs and chances."""
    table = CostTable(costs(), MAX_LENGTH)
    return max(
        range(MAX_LENGTH + 1),
        key=lambda k: sum(chance**i for i in range(k + 1)) / table.seconds(number, k),
    )


def test_acceptance_is_the_share_of_tries():
    estimate = AcceptanceEstimate(3)
    for _ in range(1000):
        estimate.observe([10, 10, 0], [8, 4, 0])
    first, second, third = estimate.chances()
    assert (first, second) == (pytest.approx(0.8, abs=0.01), pytest.approx(0.4, abs=0.01))
    # Never tried: what was accepted at the position before, given the one before that, goes on.
    assert third == pytest.approx(0.4 * 0.5, abs=0.01)


def test_chances_never_rise_and_are_hopeful_before_anything_was_tried():
    assert AcceptanceEstimate(3).chances() == pytest.approx([0.7, 0.49, 0.343])
    estimate = AcceptanceEstimate(2)
    estimate.observe([1, 50], [0, 50])
    first, second = estimate.chances()
    assert second <= first < 0.7


def test_old_rounds_are_forgotten():
    estimate = AcceptanceEstimate(1)
    for accepted in (100, 0):
        for _ in range(400):
            estimate.observe([100], [accepted])
    assert estimate.chances()[0] < 0.02


def test_costs_are_in_proportion_between_what_was_measured():
    table = CostTable([(2, 0, 1.0), (2, 4, 3.0), (4, 0, 2.0), (4, 4, 8.0)], 4)
    assert table.seconds(2, 2) == pytest.approx(2.0)
    assert table.seconds(3, 4) == pytest.approx(5.5)
    assert table.seconds(1, 0) == pytest.approx(1.0)
    assert table.seconds(9, 4) == pytest.approx(8.0)
    with pytest.raises(ValueError, match="at least one measured round"):
        CostTable([], 4)


def test_costs_follow_what_rounds_take_and_a_slower_machine_slows_all():
    table = CostTable(costs(), MAX_LENGTH)
    before = table.seconds(4, 3), table.seconds(4, 0)
    for _ in range(300):
        table.observe(4, 3, 2 * before[0])
    assert table.seconds(4, 3) == pytest.approx(2 * before[0], rel=0.02)
    assert 1.1 * before[1] < table.seconds(4, 0) < 1.5 * before[1]


def test_one_interrupted_round_changes_little():
    table = CostTable(costs(), MAX_LENGTH)
    before = table.seconds(4, 3)
    table.observe(4, 3, 1000 * before)
    assert table.seconds(4, 3) < 1.3 * before
    for _ in range(20):
        table.observe(4, 3, before)
    assert table.seconds(4, 3) < 1.1 * before


@pytest.mark.parametrize("number", [1, 8])
@pytest.mark.parametrize("chance", [0.05, 0.45, 0.7, 0.9])
def test_the_chosen_length_is_the_best_by_trying_all(number, chance):
    controlled = controller()
    for length in (6, 3, 6):
        tell(controlled, number, length, chance)
    assert controlled.choose(number) == best_length(number, chance)


def test_drafts_get_longer_as_sequences_get_fewer():
    controlled = controller(draft_s=0.01, verify_s=0.12)
    tell(controlled, 8, 6, 0.8)
    lengths = [controlled.choose(number) for number in (8, 4, 2, 1)]
    assert lengths == sorted(lengths)
    assert lengths[0] < lengths[-1]


def test_a_worthless_draft_is_switched_off_and_tried_again_now_and_then():
    controlled = controller()
    tell(controlled, 4, 6, 0.0)
    chosen = [controlled.choose(4) for _ in range(256)]
    assert chosen.count(0) == 241
    assert chosen.count(1) == 15


def test_what_is_not_chosen_is_tried_now_and_then():
    controlled = controller()
    tell(controlled, 4, 6, 0.6)
    current = controlled.choose(4)
    assert 0 < current < MAX_LENGTH
    others = [length for length in (controlled.choose(4) for _ in range(32 * 6)) if length != current]
    assert others == [*[current + 1] * 2, 0, 0] * 3


def test_a_little_more_is_no_reason_to_switch():
    controlled = controller()
    tell(controlled, 4, 6, 0.7)
    current = controlled.choose(4)
    other = current + 1
    speed = controlled._speeds(4)
    # Make the other length better by less than the gain that a switch needs.
    factor = speed[current] / speed[other] * (1 + SWITCHING_GAIN / 2)
    controlled.costs._cells[4][other] /= factor
    assert controlled._speeds(4)[other] > speed[current]
    assert controlled.choose(4) == current
    controlled.costs._cells[4][other] /= 1 + 2 * SWITCHING_GAIN
    assert controlled.choose(4) == other


def test_no_more_looked_up_tokens_are_verified_than_pay():
    controlled = controller()
    tell(controlled, 8, 6, 0.9)
    assert controlled.width([6] * 8) > 0
    assert controlled.width([6] + [0] * 7) == 0
    assert controlled.width([2] * 8) <= 2
    assert controlled.width([0] * 8) == 0


def test_the_first_round_of_a_length_says_nothing_of_its_cost():
    controlled = controller()
    before = controlled.predicted_s(4, 3)
    for length in (3, 2, 3, 0, 3):
        controlled.observe(4, length, [4] * length, [4] * length, 10 * before)
    assert controlled.predicted_s(4, 3) == before
    controlled.observe(4, 3, [4] * 3, [4] * 3, 10 * before)
    assert controlled.predicted_s(4, 3) > before


def test_lookups_that_do_not_pay_are_left_out_and_tried_again():
    controlled = controller()
    assert controlled.choose_lookup(4) == MAX_LENGTH
    for _ in range(50):
        controlled.observe_lookup(4, num_tokens=4, seconds=1.2)  # a plain round yields 4 in 1 s
    chosen = [controlled.choose_lookup(4) for _ in range(128)]
    assert chosen.count(MAX_LENGTH) == 4
    for _ in range(50):
        controlled.observe_lookup(4, num_tokens=8, seconds=1.2)
    assert controlled.choose_lookup(4) == MAX_LENGTH
