import pytest

from workers.algo.draft_length import SETTLING_ROUNDS, SWITCHING_GAIN, TRIAL_SHARE, DraftLengthController, Round
from workers.algo.first_costs import RoundTime
from workers.algo.round_costs import CostTable, between

MAX_LENGTH = 6


def costs(draft_s=0.1, verify_s=0.05, numbers=(1, 2, 4, 8), scale=1.0):
    """A round of n sequences and length k takes scale (1 + k (draft_s + verify_s n)) seconds."""
    lengths = range(MAX_LENGTH + 1)
    return [RoundTime(n, k, 0.0, scale * (1 + k * (draft_s + verify_s * n))) for n in numbers for k in lengths]


def controller(**changes):
    return DraftLengthController(MAX_LENGTH, CostTable(costs(**changes), MAX_LENGTH))


def expected(number, length, chance):
    return [number * chance ** (i + 1) for i in range(length)]


def tell(controlled, number, length, chance, rounds=200, table=None):
    """Rounds of one length in which each drafted token is accepted with a chance, given all before it."""
    table = table or CostTable(costs(), MAX_LENGTH)
    for _ in range(rounds):
        accepted = expected(number, length, chance)
        controlled.observe(
            Round(number, length, 0.0, [number] * length, accepted, 0, table.seconds(number, length, 0.0))
        )


def rounds_of(controlled, number, chance, num_rounds, table=None):
    """What was chosen for round after round."""
    chosen = []
    for _ in range(num_rounds):
        chosen.append(controlled.choose(number))
        tell(controlled, number, chosen[-1], chance, 1, table)
    return chosen


def speed(number, chance, length):
    """Tokens of a sequence by the time of the table."""
    return sum(chance**i for i in range(length + 1)) / CostTable(costs(), MAX_LENGTH).seconds(number, length, 0.0)


def best_length(number, chance):
    """By trying all, of the same costs and chances."""
    return max(range(MAX_LENGTH + 1), key=lambda k: speed(number, chance, k))


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


def test_what_trials_of_a_worthless_draft_lose_is_bound():
    controlled, table = controller(scale=0.003), CostTable(costs(scale=0.003), MAX_LENGTH)
    tell(controlled, 4, 6, 0.0, table=table)
    chosen = rounds_of(controlled, 4, 0.0, 3000, table)
    taken, plain = sum(table.seconds(4, k, 0.0) for k in chosen), 3000 * table.seconds(4, 0, 0.0)
    assert plain < taken < plain * (1 + 1.5 * TRIAL_SHARE)


def test_a_draft_that_has_become_good_is_taken_up_again():
    controlled, table = controller(scale=0.003), CostTable(costs(scale=0.003), MAX_LENGTH)
    tell(controlled, 8, 6, 0.1, rounds=50, table=table)
    last = rounds_of(controlled, 8, 0.9, 3000, table)[-100:]
    assert min(speed(8, 0.9, length) for length in last) > 0.95 * speed(8, 0.9, best_length(8, 0.9))
    assert speed(8, 0.9, max(set(last), key=last.count)) > 0.985 * speed(8, 0.9, best_length(8, 0.9))


@pytest.mark.parametrize("error", [1.03, 1.08])
def test_what_may_be_the_best_is_tried_and_what_cannot_be_is_not(error):
    """The best length was measured too dear; the truth is found, and hopeless lengths never run."""
    true = CostTable(costs(), MAX_LENGTH)
    best = best_length(4, 0.8)
    wrong = [RoundTime(n, k, x, s * (error if k == best else 1.0)) for n, k, x, s in costs()]
    controlled = DraftLengthController(MAX_LENGTH, CostTable(wrong, MAX_LENGTH))
    chosen = rounds_of(controlled, 4, 0.8, 3000, true)
    speeds = [sum(0.8**i for i in range(k + 1)) / true.seconds(4, k, 0.0) for k in range(MAX_LENGTH + 1)]
    assert speeds[max(set(chosen[-500:]), key=chosen[-500:].count)] > 0.985 * speeds[best]
    assert not {k for k in chosen if speeds[k] < 0.8 * speeds[best]}


def test_a_little_more_is_no_reason_to_switch():
    controlled = controller()
    for length in range(MAX_LENGTH + 1):
        tell(controlled, 4, length, 0.7)
    current = controlled.choose(4)
    hopes = controlled._hopes(4)
    other = max((k for k in range(MAX_LENGTH + 1) if k != current), key=hopes.__getitem__)
    # Make the other length better by less than the gain that a switch needs.
    controlled.costs._empty[4][other] /= hopes[current] / hopes[other] * (1 + SWITCHING_GAIN / 2)
    assert controlled._hopes(4)[other] > hopes[current]
    assert controlled._plan(4).length == current
    controlled.costs._empty[4][other] /= 1 + SWITCHING_GAIN
    assert controlled._plan(4).length == other


def test_a_choice_holds_for_some_time_and_for_numbers_that_are_close():
    controlled, table = controller(scale=0.001, numbers=(1, 64)), CostTable(costs(scale=0.001), MAX_LENGTH)
    first = controlled.choose(64)
    tell(controlled, 64, first, 0.0, 1, table)
    assert controlled.choose(64) == controlled.choose(65) == first
    for _ in range(200):
        tell(controlled, 64, first, 0.0, 1, table)
    assert controlled.choose(64) == 0


def looking(controlled, number, drafted, seconds=0.01, rounds=1, chance=0.0):
    """Rounds that may look, find drafts of these lengths of which a token is accepted with a chance, given those before
    it, and verify what pays."""
    widths = []
    for _ in range(rounds):
        width = 0
        if is_looking := controlled.choose_lookup(number) > 0:
            width = controlled.width(drafted)
        tried = [sum(n > i for n in drafted) for i in range(width)]
        accepted = [count * chance ** (i + 1) for i, count in enumerate(tried)]
        controlled.observe(Round(number, width, 0.0, tried, accepted, 0, 1 + width * (0.1 + 0.05 * number)))
        if is_looking:
            controlled.observe_lookup(number, seconds)
        widths.append((is_looking, width))
    return widths


def test_no_more_looked_up_tokens_are_verified_than_pay():
    controlled = controller()
    tell(controlled, 8, 6, 0.9)
    assert controlled.choose_lookup(8) == MAX_LENGTH
    assert controlled.width([6] * 8) > 0
    assert controlled.width([6] + [0] * 7) == 0
    assert 0 < controlled.width([2] * 8) <= 2
    assert controlled.width([0] * 8) == 0


def test_the_width_is_the_best_by_trying_all():
    """Of n + sum of g_i over what is drafted, less c(n, w) n / c(n, 0), where lookups gained nothing so far."""
    controlled = controller()
    tell(controlled, 4, 6, 0.8)
    for drafted in ([6, 6, 5, 5], [6, 2, 2, 2], [3, 3, 0, 0], [1, 1, 1, 1]):
        controlled.choose_lookup(4)
        chances, seconds = controlled.acceptance.chances(), controlled.costs.row(4)
        gains = [
            sum(chances[i] * sum(n > i for n in drafted) for i in range(w)) - (seconds[w] / seconds[0] - 1) * 4
            for w in range(max(drafted) + 1)
        ]
        assert gains[controlled.width(drafted)] == pytest.approx(max(gains), abs=1e-9)


def test_where_rounds_are_packed_only_what_is_drafted_is_paid_for():
    controlled = DraftLengthController(MAX_LENGTH, CostTable(costs(), MAX_LENGTH), tile=1)
    tell(controlled, 8, 6, 0.9)
    controlled.choose_lookup(8)
    assert controlled.width([6] + [0] * 7) == 6  # as dear as a token of six sequences
    chances, seconds = controlled.acceptance.chances(), controlled.costs.row(8)
    for drafted in ([6, 6, 5, 5, 0, 0, 0, 0], [6, 2, 2, 2, 1, 1, 1, 1], [4, 3, 3, 0, 0, 0, 0, 0]):
        gains = []
        for w in range(max(drafted) + 1):
            verified = sum(min(n, w) for n in drafted) / 8
            price = (between(seconds, verified) / seconds[0] - 1) * 8
            gains.append(sum(chances[i] * sum(n > i for n in drafted) for i in range(w)) - price)
        assert gains[controlled.width(drafted)] == pytest.approx(max(gains), abs=1e-9)


def test_lookups_that_find_nothing_of_worth_are_left_out_but_for_trials():
    controlled = controller()
    controlled.begin()
    looked = [is_looking for is_looking, _ in looking(controlled, 4, [0] * 4, seconds=0.2, rounds=3000)]
    assert 0 < sum(looked[100:]) < 1.3 * TRIAL_SHARE / 0.2 * 2900


def test_lookups_that_have_come_to_find_what_is_accepted_are_taken_up_again():
    """What they are looked up in grows; nothing would tell if trials went by what was accepted long ago."""
    controlled = controller()
    controlled.begin()
    looking(controlled, 4, [6] * 4, rounds=1000)
    assert sum(width for _, width in looking(controlled, 4, [6] * 4, rounds=500)) < 40
    looking(controlled, 4, [6] * 4, rounds=600, chance=0.95)
    assert min(width for _, width in looking(controlled, 4, [6] * 4, rounds=15, chance=0.95)) > 2


def test_what_looked_up_drafts_cost_is_learned_though_their_length_changes_every_round():
    controlled = controller()
    tell(controlled, 4, 6, 0.95)
    controlled.begin()
    before = [controlled.predicted_s(4, width, 0.0) for width in (2, 4)]
    for i in range(200):
        controlled.choose_lookup(4)
        width = (2, 4)[i % 2]
        controlled.observe(Round(4, width, 0.0, [4] * width, [4] * width, 0, 1.5 * before[i % 2]))
        controlled.observe_lookup(4, 0.01)
    controlled.begin()
    after = [controlled.predicted_s(4, width, 0.0) for width in (2, 4)]
    assert after == pytest.approx([1.5 * s for s in before], rel=0.05)


def test_the_first_rounds_of_a_length_and_of_a_call_say_nothing_of_its_cost():
    controlled = controller()
    before = controlled.predicted_s(4, 3, 0.0)

    def observe(*lengths):
        for length in lengths:
            controlled.observe(Round(4, length, 0.0, [4] * length, [4] * length, 0, 10 * before))

    for length in (3, 2, 3, 0, 3):
        observe(*[length] * SETTLING_ROUNDS)
    controlled.begin()
    observe(3, 3, 3)
    controlled.begin()
    assert controlled.predicted_s(4, 3, 0.0) == before
    observe(3, 3, 3, 3)
    controlled.begin()
    assert controlled.predicted_s(4, 3, 0.0) > before


def test_a_length_is_not_judged_by_how_long_sequences_were_when_it_ran():
    """Short ones whenever it ran, so that it looks better than the best."""
    longer = [RoundTime(n, k, 100.0, 2 * s) for n, k, _, s in costs()]
    controlled = DraftLengthController(MAX_LENGTH, CostTable([*costs(), *longer], MAX_LENGTH))
    true = CostTable([*costs(), *longer], MAX_LENGTH)
    best = best_length(4, 0.8)
    for _ in range(50):
        for length, context in ((best, 100.0), (6, 0.0)):
            taken = true.seconds(4, length, context)
            for _ in range(SETTLING_ROUNDS + 2):
                controlled.observe(Round(4, length, context, [4] * length, expected(4, length, 0.8), 0, taken))
    assert best != 6
    assert controlled.choose(4) == best
