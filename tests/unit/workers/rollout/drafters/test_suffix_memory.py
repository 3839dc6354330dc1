from workers.rollout.drafters.lookup import Rule
from workers.rollout.drafters.suffix_memory import Grown, SuffixMemory

A, B, C = [1, 1], [2, 2], [3, 3]


def is_known(memory, prompt, run):
    return memory.of(prompt).index.count(run) > 0


def add(memory, prompt, response):
    remembered = memory.of(prompt)
    memory.keep(remembered, len(response), Grown(remembered.index, remembered.beginning, response))
    memory.read()


def test_prompts_are_apart_and_remembered():
    memory = SuffixMemory(100)
    add(memory, A, [7, 8])
    add(memory, B, [7, 9])
    add(memory, A, [7, 8])
    assert memory.of(A).index.count([7, 8]) == 2
    assert not is_known(memory, B, [7, 8])
    assert memory.num_stored_tokens == 10  # two prompts of two, three responses of two


def test_the_prompt_not_seen_for_longest_is_forgotten_first():
    memory = SuffixMemory(12)
    add(memory, A, [7, 8])
    add(memory, B, [7, 8])
    memory.of(A)
    add(memory, C, [7, 8, 9])  # 15 tokens: B goes
    assert memory.num_stored_tokens == 9
    assert is_known(memory, A, [7, 8])
    assert is_known(memory, C, [7, 8, 9])
    assert not is_known(memory, B, [7])


def test_a_prompt_that_is_too_much_by_itself_is_forgotten_and_its_rows_go_on():
    memory = SuffixMemory(3)
    at_work = memory.of(A)
    end = Grown(at_work.index, at_work.beginning, [7] * 5)
    memory.keep(at_work, 5, end)
    assert memory.num_stored_tokens == 0
    memory.keep(at_work, 5, end)  # a row of the same prompt that ends later
    assert memory.num_stored_tokens == 0
    assert memory.of(A) is not at_work


def test_what_is_learned_above_is_not_known_below():
    memory = SuffixMemory(100)
    add(memory, A, [7, 8])
    above = memory.overlaid()
    assert is_known(above, A, [7, 8])
    add(above, A, [7, 9])
    add(above, B, [5])
    assert is_known(above, A, [7, 9])
    assert above.of(A).index.count([7]) == 2
    assert memory.of(A).index.count([7]) == 1
    assert not is_known(memory, B, [5])


def test_ends_of_responses_are_read_with_a_lookup_or_when_they_are_many():
    memory = SuffixMemory(10_000)
    remembered = memory.of(A)
    for number in range(1, 65):
        memory.keep(remembered, 2, Grown(remembered.index, remembered.beginning, [7, 8]))
        assert remembered.index.count([7, 8]) == (64 if number == 64 else 0)
    memory.keep(remembered, 2, Grown(remembered.index, remembered.beginning, [7, 9]))
    text = Grown(remembered.index, remembered.beginning, [7])
    _, proposals = memory.look_up([text], Rule(3, 1, 10, 0.0))
    assert proposals.token_ids.tolist() == [8, 0, 0]
    assert remembered.index.count([7, 9]) == 1
