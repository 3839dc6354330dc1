import pytest
import torch

from contract.config.resources import ResourcesConfig
from workers.actors import RemoteEngines, engine_gpus, merge_results, share_out
from workers.algo.sampling import Truncation
from workers.rollout.engine import (
    Completion,
    DraftEvidence,
    RolloutResult,
    RoundCost,
    SamplingParams,
    SpeculationCounters,
)


@pytest.mark.parametrize(
    ("num_prompts", "num_engines", "sizes"), [(16, 2, [8, 8]), (5, 2, [2, 3]), (1, 2, [0, 1]), (7, 3, [2, 2, 3])]
)
def test_prompts_are_shared_out_once_each_in_order(num_prompts, num_engines, sizes):
    shares = share_out(num_prompts, num_engines)
    assert [len(share) for share in shares] == sizes
    assert [i for share in shares for i in share] == list(range(num_prompts))


@pytest.mark.parametrize(
    ("num_nodes", "gpus_per_node", "num_engines", "share"),
    [(1, 0, 2, 0.0), (1, 4, 2, 1.0), (1, 1, 2, 0.5), (2, 2, 6, 0.5), (1, 3, 3, 1.0), (1, 2, 5, 1 / 3)],
)
def test_engines_claim_gpus_such_that_all_find_a_place(num_nodes, gpus_per_node, num_engines, share):
    resources = ResourcesConfig(num_nodes=num_nodes, gpus_per_node=gpus_per_node)
    claimed = engine_gpus(resources, num_engines)
    assert claimed == share
    if claimed:
        assert int(1 / claimed) * num_nodes * gpus_per_node >= num_engines


def test_results_are_put_together_in_order():
    def result(prompt_indices, num_drafts, seconds):
        completions = [Completion(i, [i], [0.0], is_truncated=False) for i in prompt_indices]
        return RolloutResult(completions, SpeculationCounters(num_drafts, 3 * num_drafts, num_drafts), seconds)

    merged = merge_results(
        [range(0), range(2), range(2, 4)], [result([0, 0, 1, 1], 5, 0.3), result([0, 0, 1, 1], 7, 0.2)]
    )
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

    merged = merge_results([range(2), range(2, 4), range(4, 6)], [result([0, 1], 3), result(None, 0), result([1], 1)])
    assert merged.evidence.completion_M.tolist() == [0, 1, 5]
    assert merged.evidence.top_ids_MN.tolist() == [[3, 3, 3], [3, 3, 3], [3, -1, -1]]
    assert merged.evidence.top_probs_MN[2].tolist() == [0.5, 0.0, 0.0]
    assert len(merged.round_costs) == 3
    assert merge_results([range(2)], [result(None, 0)]).evidence is None


class _Method:
    def __init__(self, actor):
        self._actor = actor

    def remote(self, method, *arguments, **named):
        self._actor.calls.append((method, arguments, named))
        return [Completion(i, [1], [0.0], is_truncated=False) for i, _ in enumerate(arguments[0]) for _ in range(2)]


class _Actor:
    def __init__(self):
        self.calls = []
        self.call = _Method(self)


class _Calls:
    def get_all(self, who, references):
        return [RolloutResult(completions, SpeculationCounters(), 0.1) for completions in references]


def test_each_engine_gets_its_prompts_its_rows_and_a_seed_of_its_own():
    actors = [_Actor(), _Actor()]
    engines = RemoteEngines(actors, _Calls())
    params = SamplingParams(0.9, 8, 1, Truncation(top_k=4))
    result = engines.generate([[5], [6], [7]], 2, params, record_rounds_of=[1, 2, 5], evidence_of=[0, 3])
    (first,), (second,) = (actor.calls for actor in actors)
    assert (first[1][0], second[1][0]) == ([[5]], [[6], [7]])
    assert (first[2]["record_rounds_of"], second[2]["record_rounds_of"]) == ([1], [0, 3])
    assert (first[2]["evidence_of"], second[2]["evidence_of"]) == ([0], [1])
    assert first[1][2].seed != second[1][2].seed
    assert first[1][2].truncation == second[1][2].truncation == Truncation(top_k=4)
    assert {first[1][2].temperature, second[1][2].temperature} == {0.9}
    assert [completion.prompt_index for completion in result.completions] == [0, 0, 1, 1, 2, 2]


def test_an_engine_without_prompts_is_left_alone():
    actors = [_Actor(), _Actor()]
    RemoteEngines(actors, _Calls()).generate([[5]], 2, SamplingParams(0.9, 8, 1))
    assert [len(actor.calls) for actor in actors] == [0, 1]
