import random
from collections import Counter

import pytest

from workers.rollout.drafters.lookup import Rule
from workers.rollout.drafters.suffix_index import ROOT, SuffixIndex
from workers.rollout.native.suffix_index import NativeSuffixIndex


@pytest.fixture(params=[SuffixIndex, NativeSuffixIndex])
def new_index(request):
    return request.param


def index_of(new_index, *texts):
    index = new_index()
    return index, [index.extend(ROOT, text) for text in texts]


def follow(index, state, max_tokens, min_match=1, max_match=100, min_probability=0.0):
    rule = Rule(max_tokens, min_match, max_match, min_probability)
    (same,), proposals = index.look_up([index], [state], [[]], 1, rule)
    assert same == state
    return proposals.token_ids[: proposals.lengths[0]].tolist()


def random_texts(new_index, rng):
    """Texts of one beginning that grew in turns, the index of them and their states."""
    alphabet = rng.choice([2, 3, 5])
    prompt = [rng.randrange(alphabet) for _ in range(rng.randrange(1, 5))]
    index, (state,) = index_of(new_index, prompt)
    texts, states = [list(prompt) for _ in range(4)], [state] * 4
    for _ in range(rng.randrange(1, 40)):
        at, token = rng.randrange(4), rng.randrange(alphabet)
        states[at] = index.extend(states[at], [token])
        texts[at].append(token)
    return prompt, texts, index, states


def runs_counted_slowly(prompt, texts):
    """How often every run ends at each place of the tree that the texts make, their common beginning being one."""
    counts = Counter()
    for number, text in enumerate(texts):
        for end in range(len(prompt) + 1 if number else 1, len(text) + 1):
            counts.update(tuple(text[begin:end]) for begin in range(end))
    return counts


def followed_slowly(counts, text, max_tokens, min_match, max_match, min_probability):
    """The rule of SuffixIndex.look_up by counts of runs."""
    text, proposal, probability = list(text), [], 1.0
    longest = max_match
    while len(proposal) < max_tokens:
        for length in range(min(longest, len(text)), min_match - 1, -1):
            newest = tuple(text[-length:])
            after = {run[-1]: n for run, n in counts.items() if len(run) == length + 1 and run[:-1] == newest}
            if after:
                break
        else:
            break
        best = max(after.values())
        probability *= best / (sum(after.values()) + 0.5)
        if probability < min_probability:
            break
        proposal.append([token for token, n in after.items() if n == best])
        text.append(proposal[-1][0])
        longest = length + 1
        if len(proposal[-1]) > 1:
            break  # a tie: whichever is taken, the rest depends on it
    return proposal


def test_hand_computed_counts(new_index):
    """Of 1 2 1 2 3 and 1 2 3: 1 2 ends at three places, 2 3 at two, 1 2 1 at one, 3 1 at none."""
    index, _ = index_of(new_index, [1, 2, 1, 2, 3], [1, 2, 3])
    runs = [[1, 2], [2, 3], [1, 2, 1], [3, 1], [2]]
    assert [index.count(run) for run in runs] == [3, 2, 1, 0, 3]


def test_hand_computed_continuation(new_index):
    """After 2: 3 twice and 1 once. After 1 2 1: 2 once, and so on; 2 1 has nothing of its own that goes on."""
    index, (_, _, state) = index_of(new_index, [1, 2, 1, 2, 3, 4], [5, 2, 3, 4], [7, 2])
    assert follow(index, state, 5) == [3, 4]
    # 2/3.5, then 4 by 2/2.5: 0.46 together.
    assert follow(index, state, 5, min_probability=0.5) == [3]
    assert follow(index, state, 1) == [3]
    assert follow(index, state, 5, min_match=2) == []


def test_the_longest_match_decides_and_its_length_is_bounded(new_index):
    """9 1 is followed by 5, and 1 otherwise by 6, twice."""
    texts = ([9, 1, 5], [8, 1, 6], [7, 1, 6], [9, 1])
    index, states = index_of(new_index, *texts)
    assert follow(index, states[3], 1, max_match=2) == [5]
    assert follow(index, states[3], 1, max_match=1) == [6]


@pytest.mark.parametrize("seed", range(30))
def test_counts_are_those_of_a_slow_count(new_index, seed):
    prompt, texts, index, _ = random_texts(new_index, random.Random(seed))
    counts = runs_counted_slowly(prompt, texts)
    for run, expected in counts.items():
        assert index.count(list(run)) == expected
    assert index.count([99]) == 0


@pytest.mark.parametrize("seed", range(30))
def test_continuations_are_those_of_a_slow_search(new_index, seed):
    rng = random.Random(seed)
    prompt, texts, index, states = random_texts(new_index, rng)
    counts = runs_counted_slowly(prompt, texts)
    for text, state in zip(texts, states, strict=True):
        rule = (rng.randrange(1, 3), rng.randrange(3, 9), rng.choice([0.0, 0.2, 0.5]))
        expected = followed_slowly(counts, text, 6, *rule)
        found = follow(index, state, 6, *rule)
        assert all(token in choices for token, choices in zip(found, expected, strict=False))
        assert len(found) >= len(expected)
        if all(len(choices) == 1 for choices in expected):
            assert len(found) == len(expected)


def test_the_number_of_states_stays_below_twice_the_tokens(new_index):
    rng = random.Random(1)
    text = [rng.randrange(3) for _ in range(3000)]
    index, _ = index_of(new_index, text[:1000], text[1000:2000], text[2000:])
    assert index.num_states <= 2 * len(text)


def test_texts_of_an_index_all_grow_before_any_is_followed(new_index):
    """The second text's 3 4 is what the first finds, which came to its 3 in the same call; another index knows none."""
    index, states = index_of(new_index, [1, 2], [5])
    other, others = index_of(new_index, [1, 2])
    rule = Rule(3, 1, 100, 0.0)
    texts = [index, index, other], [*states, *others], [[3], [3, 4], [3]]
    grown, proposals = new_index.look_up(*texts, 3, rule)
    assert proposals.token_ids[: proposals.lengths[0]].tolist() == [4]
    assert list(proposals.lengths) == [1, 0, 0]
    assert index.count([3]) == 2
    assert index.extend(grown[0], [9]) == index.num_states - 1


def test_a_copy_grows_on_its_own(new_index):
    index, (state,) = index_of(new_index, [1, 2, 3])
    twin = index.copy()
    twin.extend(state, range(4, 200))
    index.extend(state, [7])
    assert (index.count([3, 4]), index.count([3, 7])) == (0, 1)
    assert (twin.count([3, 4]), twin.count([3, 7])) == (1, 0)


def test_texts_behind_those_that_are_followed_grow_as_well(new_index):
    index, states = index_of(new_index, [1, 2], [5])
    grown, proposals = new_index.look_up([index, index], states, [[3], [3, 4]], 1, Rule(3, 1, 100, 0.0))
    assert proposals.token_ids.tolist()[:1] == [4]
    assert list(proposals.lengths) == [1]
    assert index.count([5, 3, 4]) == 1
    assert len(grown) == 2
