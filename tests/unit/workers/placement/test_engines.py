"""How prompts are handed out; tests/integration/workers has engines in processes of their own."""

from workers.algo.sampling import Truncation
from workers.placement.engines import RemoteEngines
from workers.rollout.engine import Completion, RolloutResult, SamplingParams, SpeculationCounters


class _Method:
    def __init__(self, actor):
        self._actor = actor

    def remote(self, method, *arguments, **named):
        self._actor.calls.append((method, arguments, named))
        prompts, num_samples, _ = arguments
        made = [
            Completion(i, [p[0]], [0.0], is_truncated=False) for i, p in enumerate(prompts) for _ in range(num_samples)
        ]
        return RolloutResult(made, SpeculationCounters(), float(len(prompts)))


class _Actor:
    def __init__(self):
        self.calls = []
        self.call = _Method(self)


class _Calls:
    """Engines finish in a given order, again and again."""

    def __init__(self, order=(0,)):
        self._order = list(order)

    def first(self, waiting, deadline=None):
        engine = next(engine for engine in self._order if engine in waiting)
        self._order.append(self._order.pop(self._order.index(engine)))
        return engine

    def get(self, who, reference):
        return reference


def _engines(num_engines, order, max_batch_size=1):
    actors = [_Actor() for _ in range(num_engines)]
    return actors, RemoteEngines(actors, _Calls(order), max_batch_size)


def test_each_engine_gets_its_prompts_its_rows_and_a_seed_of_its_own():
    actors, engines = _engines(2, [1, 0], max_batch_size=8)
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


def test_whoever_is_free_takes_the_next_piece_and_results_stay_in_order_with_the_same_seeds():
    prompts = [[10 + i] for i in range(32)]
    seeds = []
    for order in ([0, 1], [1, 0], [1]):  # the last: engine 0 never ends before engine 1 has done all else
        actors, engines = _engines(2, [*order, 0, 1] if order == [1] else order, max_batch_size=4)
        result = engines.generate(prompts, 2, SamplingParams(1.0, 8, 7))
        assert [c.prompt_index for c in result.completions] == [i for i in range(32) for _ in range(2)]
        assert [c.token_ids[0] for c in result.completions] == [10 + i for i in range(32) for _ in range(2)]
        calls = [call for actor in actors for call in actor.calls]
        seeds.append({call[1][0][0][0]: call[1][2].seed for call in calls})
        assert result.generation_s == max(sum(len(call[1][0]) for call in actor.calls) for actor in actors)
    assert seeds[0] == seeds[1] == seeds[2]
    assert len(set(seeds[0].values())) == len(seeds[0])


def test_an_engine_without_prompts_is_left_alone():
    actors, engines = _engines(2, [0, 1])
    engines.generate([[5]], 2, SamplingParams(0.9, 8, 1))
    assert [len(actor.calls) for actor in actors] == [1, 0]
