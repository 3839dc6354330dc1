import random
from array import array

import pytest

from workers.rollout.drafters.lookup import Rule
from workers.rollout.drafters.suffix_index import ROOT, SuffixIndex
from workers.rollout.native import suffix_index
from workers.rollout.native.suffix_index import NativeSuffixIndex


def looked_up(new_index, seed, num_tokens):
    """What is found for eight texts that grow in turns, three to an index at most."""
    rng = random.Random(seed)
    alphabet = rng.choice([2, 10, 150_000])
    indices = [new_index() for _ in range(3)]
    texts = [indices[at % 3] for at in range(8)]
    states, found = [ROOT] * 8, []
    for _ in range(num_tokens // 8):
        new = [[int(alphabet * rng.random() ** 3) for _ in range(rng.randrange(4))] for _ in texts]
        states, proposals = new_index.look_up(texts, states, new, 6, Rule(7, 1, 9, 0.05))
        lengths = proposals.lengths.tolist()
        tokens = [proposals.token_ids[i * proposals.stride :][:n].tolist() for i, n in enumerate(lengths)]
        found.append((list(states), tokens))
    return found


@pytest.mark.parametrize("seed", range(12))
def test_it_finds_what_the_same_in_python_finds(seed):
    assert looked_up(NativeSuffixIndex, seed, 3000) == looked_up(SuffixIndex, seed, 3000)


def test_what_is_not_proposed_is_token_0():
    index = NativeSuffixIndex()
    state = index.extend(ROOT, [4, 5, 6, 4])
    _, proposals = index.look_up([index, index], [state, ROOT], [[], []], 2, Rule(4, 1, 9, 0.3))
    assert proposals.token_ids == array("q", [5, 6, 0, 0, 0, 0, 0, 0])
    assert proposals.lengths == array("q", [2, 0])


def test_without_a_compiler_there_is_none(monkeypatch):
    monkeypatch.setattr(suffix_index, "load", lambda: None)
    with pytest.raises(RuntimeError, match="no C compiler"):
        NativeSuffixIndex()
