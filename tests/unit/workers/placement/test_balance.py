import pytest
import torch

from workers.placement.balance import local_rows, merge_results, pieces, share_out
from workers.rollout.engine import Completion, DraftEvidence, RolloutResult, RoundCost, SpeculationCounters


@pytest.mark.parametrize(
    ("num_prompts", "num_parts", "sizes"), [(16, 2, [8, 8]), (5, 2, [2, 3]), (1, 2, [0, 1]), (7, 3, [2, 2, 3])]
)
def test_prompts_are_shared_out_once_each_in_order(num_prompts, num_parts, sizes):
    shares = share_out(num_prompts, num_parts)
    assert [len(share) for share in shares] == sizes
    assert [i for share in shares for i in share] == list(range(num_prompts))


@pytest.mark.parametrize(
    ("num_prompts", "num_engines", "num_full", "sizes"),
    [
        (64, 1, 4, [64]),
        (7, 3, 4, [2, 2, 3]),
        (1, 2, 4, [1]),
        (32, 2, 4, [8, 6, 5, 4, 4, 5]),
        (9, 2, 4, [4, 5]),
        (16, 2, 1, [4, 3, 3, 2, 1, 1, 1, 1]),
    ],
)
def test_pieces_become_smaller_and_none_leaves_a_batch_unfilled(num_prompts, num_engines, num_full, sizes):
    made = pieces(num_prompts, num_engines, num_full)
    assert [len(piece) for piece in made] == sizes
    assert [i for piece in made for i in piece] == list(range(num_prompts))


def test_the_engines_that_wait_at_the_end_wait_for_less_than_with_equal_shares():
    """Simulated: prompts whose responses' lengths vary by groups, as those of hard and easy problems do."""
    generator = torch.Generator().manual_seed(0)
    idle_shares, idle_pieces = 0.0, 0.0
    for _ in range(50):
        lengths = torch.empty(64).exponential_(1.0, generator=generator)
        idle_shares += _idle(lengths, share_out(64, 4), 4)
        idle_pieces += _idle(lengths, pieces(64, 4, 4), 4)
    assert idle_pieces < 0.8 * idle_shares


def _idle(lengths, work, num_engines):
    """Time for which the engines wait on average, when the next piece goes to whoever is free."""
    free_at = [0.0] * num_engines
    for piece in work:
        free_at.sort()
        free_at[0] += float(lengths[piece.start : piece.stop].sum())
    return max(free_at) - sum(free_at) / num_engines


def test_rows_of_all_are_rows_of_a_piece():
    assert [local_rows([1, 2, 5], piece, 2) for piece in (range(1), range(1, 3))] == [[1], [0, 3]]


def test_results_are_put_together_in_order():
    def result(prompt_indices, num_drafts):
        completions = [Completion(i, [i], [0.0], is_truncated=False) for i in prompt_indices]
        return RolloutResult(completions, SpeculationCounters(num_drafts, 3 * num_drafts, num_drafts), 0.1)

    merged = merge_results([range(2), range(2, 4)], [result([0, 0, 1, 1], 5), result([0, 0, 1, 1], 7)], 0.3)
    assert [completion.prompt_index for completion in merged.completions] == [0, 0, 1, 1, 2, 2, 3, 3]
    assert merged.counters.num_drafts == 12
    assert merged.counters.acceptance_length == 2
    assert merged.generation_s == 0.3


def _evidence(completions, width):
    m = len(completions)
    return DraftEvidence(
        completion_M=torch.tensor(completions),
        position_M=torch.arange(m),
        drafted_M=torch.full((m,), 3),
        is_accepted_M=torch.ones(m, dtype=torch.bool),
        draft_probs_M=torch.full((m,), 0.5),
        top_ids_MN=torch.full((m, width), 3),
        top_probs_MN=torch.full((m, width), 0.5),
    )


def test_evidence_and_costs_of_all_engines_are_kept_and_told_apart():
    def result(completions, width):
        made = [Completion(i, [1], [0.0], is_truncated=False) for i in (0, 1)]
        evidence = None if completions is None else _evidence(completions, width)
        return RolloutResult(made, SpeculationCounters(), 0.1, [RoundCost(4, 3, 2, 0.2, 0.1)], evidence)

    shares = [range(2), range(2, 4), range(4, 6)]
    merged = merge_results(shares, [result([0, 1], 3), result(None, 0), result([1], 1)], 0.1)
    assert merged.evidence.completion_M.tolist() == [0, 1, 5]
    assert merged.evidence.top_ids_MN.tolist() == [[3, 3, 3], [3, 3, 3], [3, -1, -1]]
    assert merged.evidence.top_probs_MN[2].tolist() == [0.5, 0.0, 0.0]
    assert len(merged.round_costs) == 3
    assert merge_results([range(2)], [result(None, 0)], 0.1).evidence is None
