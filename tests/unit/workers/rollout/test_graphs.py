"""Regions on static buffers, run on a processor: what a CUDA graph would repeat, function by function."""

import pytest
import torch

from workers.rollout import packed_weights
from workers.rollout.engine import SamplingParams
from workers.rollout.graphs import Buffers, StaticOperations, bucket

CPU = torch.device("cpu")
PROMPTS = [[3, 4, 5, 6, 7], [8], [9, 10, 11], [2, 2, 2, 2], [5, 1]]


@pytest.fixture
def static(monkeypatch):
    """Engines made from here on run their regions on static buffers; the operations of each, in order."""
    made = []

    def choose(config, dtype, device):
        made.append(StaticOperations(config.rms_norm_eps, dtype, device))
        return made[-1]

    monkeypatch.setattr(packed_weights, "choose_operations", choose)
    return made


@pytest.fixture
def operations():
    return StaticOperations(1e-6, torch.float32, CPU)


def test_sizes_are_powers_of_two_and_what_lies_half_way():
    assert [bucket(n) for n in (1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 17, 24, 25, 64)] == [
        *(1, 2, 3, 4, 6, 6, 8, 8, 12, 12, 16, 24, 24, 32, 64),
    ]
    for number in range(1, 2000):
        assert number <= bucket(number) <= max(1.5 * (number - 1), number)


def test_a_span_fits_whatever_cache_it_is_for(operations, models):
    config = models.policy.config
    for capacity in (1, 200, 256, 300, 1000, 5000):
        cache = operations.allocate_cache(config, 1, 1, 1, is_verified=True)
        kept = operations.keep_cache(f"for {capacity}", config, 1, 1, capacity, is_verified=True)
        assert cache.capacity == 1
        assert operations.round_span(capacity) <= kept.capacity


def test_rows_are_padded_with_zeros_whatever_was_there_before(operations):
    seen = []

    def double(x_RN, none):
        seen.append(x_RN.clone())
        return x_RN * 2, None

    (first, nothing) = operations.region("double", double, (torch.full((4, 2), 7.0), None))
    assert nothing is None
    (second, _) = operations.region("double", double, (torch.full((5, 2), 3.0), None))
    assert first.shape == (4, 2)
    assert torch.equal(second, torch.full((5, 2), 6.0))
    assert torch.equal(seen[-1], torch.tensor([[3.0] * 2] * 5 + [[0.0] * 2]))


def test_what_came_first_is_repeated_for_equal_settings_only(operations):
    x = torch.ones(2, 1)

    def times(factor):
        return operations.region("times", lambda x: (x * factor,), (x,), factor)[0].tolist()

    assert times(2) == [[2.0], [2.0]]
    assert times(3) == [[3.0], [3.0]]
    assert operations.region("times", lambda x: (x * 9,), (x,), 2)[0].tolist() == [[2.0], [2.0]]


def test_buffers_at_most_double_and_old_ones_stay_whole():
    buffers = Buffers(CPU)
    small = buffers.view("x", torch.Size((3, 2)), torch.float32)
    small.fill_(5)
    large = buffers.view("x", torch.Size((9, 2)), torch.float32)
    assert large.untyped_storage().nbytes() == 4 * 32
    large.fill_(1)
    assert small.tolist() == [[5.0] * 2] * 3
    assert buffers.view("x", torch.Size((4, 8)), torch.float32).data_ptr() == large.data_ptr()


def test_kept_caches_are_emptied_and_grow_without_losing_room(operations, models):
    config = models.policy.config
    first = operations.keep_cache("policy", config, 2, 5, 300, is_verified=True)
    assert (first.num_rows, first.capacity) == (6, 512)
    first.keys[1].fill_(float("nan"))
    again = operations.keep_cache("policy", config, 2, 3, 100, is_verified=False)
    assert again is first
    assert again.keys[1].count_nonzero() == 0
    grown = operations.keep_cache("policy", config, 2, 9, 100, is_verified=True)
    assert (grown.num_rows, grown.capacity) == (12, 512)


def test_regions_that_were_not_used_for_long_are_forgotten(operations, monkeypatch):
    monkeypatch.setattr("workers.rollout.graphs._MAX_REGIONS", 3)
    x = torch.ones(1)
    for setting in [0, 1, 2, 0, 3]:
        operations.region("copy", lambda x: (x,), (x,), setting)
    assert [key[-1] for key in operations._regions] == [2, 0, 3]


@pytest.mark.parametrize("speculate", [True, False])
@pytest.mark.parametrize("max_batch_size", [1, 5, 64])
def test_greedy_responses_are_those_without_static_buffers(models, static, monkeypatch, speculate, max_batch_size):
    """Rows finish, move and are refilled at different times, and numbers of rows are rounded up."""
    params = SamplingParams(0.0, 40, 0)
    got = models.engine(max_batch_size=max_batch_size).generate(PROMPTS, 2, params, speculate=speculate)
    assert static[0]._regions
    monkeypatch.undo()
    expected = models.engine(max_batch_size=max_batch_size).generate(PROMPTS, 2, params, speculate=speculate)
    assert [c.token_ids for c in got.completions] == [c.token_ids for c in expected.completions]
    assert got.counters == expected.counters


def test_calls_share_regions_and_differ_as_their_settings_do(models, static):
    """Of temperature, truncation, rows, seeds and lengths, nothing of an earlier call may be left in a later one."""
    engine = models.engine(max_batch_size=5)
    calls = [
        (PROMPTS, SamplingParams(0.7, 20, 7)),
        (PROMPTS[:2], SamplingParams(0.0, 30, 7)),
        (PROMPTS[1:], SamplingParams(1.3, 20, 1)),
    ]
    together = [engine.generate(prompts, 3, params).completions for prompts, params in calls]
    apart = [models.engine(max_batch_size=5).generate(prompts, 3, params).completions for prompts, params in calls]
    assert [[c.token_ids for c in call] for call in together] == [[c.token_ids for c in call] for call in apart]
    num_regions = len(static[0]._regions)
    engine.generate(*(calls[0][0], 3, calls[0][1]))
    assert len(static[0]._regions) == num_regions


def test_new_weights_take_the_place_of_old_ones(models, make_models, static):
    engine, other = models.engine(), make_models(seed=9)
    params = SamplingParams(0.0, 20, 0)
    before = engine.generate(PROMPTS, 1, params)
    engine.update_policy(other.policy.state_dict())
    engine.update_draft(other.head.state_dict())
    after, fresh = engine.generate(PROMPTS, 1, params), other.engine().generate(PROMPTS, 1, params)
    assert [c.token_ids for c in after.completions] != [c.token_ids for c in before.completions]
    assert [c.token_ids for c in after.completions] == [c.token_ids for c in fresh.completions]
    assert after.counters == fresh.counters
