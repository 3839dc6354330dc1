import random

from workers.algo.positions import at_least


def test_hand_computed():
    assert at_least([2, 0, 3], 3) == [2, 2, 1]
    assert at_least([5], 2) == [1, 1]
    assert at_least([], 2) == [0, 0]
    assert at_least([1, 2], 0) == []


def test_it_is_what_comparing_each_number_gives():
    drawn = random.Random(3)
    for width in range(6):
        numbers = [drawn.randrange(8) for _ in range(20)]
        assert at_least(numbers, width) == [sum(n > i for n in numbers) for i in range(width)]
