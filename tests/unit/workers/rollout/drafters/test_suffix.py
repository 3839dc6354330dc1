from dataclasses import dataclass

import pytest
import torch

from workers.rollout.drafters.suffix import SuffixDrafter
from workers.rollout.rows import Row


@dataclass
class Block:
    """All that a lookup reads of a PromptBlock."""

    prompts: list[list[int]]


PROMPTS = [[1, 2], [3, 4]]


def drafter_of(min_match=1, max_match=8, max_stored_tokens=1000):
    return SuffixDrafter(min_match, max_match, max_stored_tokens)


def session_of(drafter, rows, prompts=PROMPTS):
    session = drafter.start(len(rows), 1000, None)
    session.prefill(Block(prompts))
    session.admit(torch.arange(len(rows)), torch.tensor(rows), torch.zeros(len(rows)))
    return session


def row_of(prompt, *response):
    return Row(0, [*PROMPTS[prompt], *response], 2, 1000)


def proposals(session, rows, draft_length=4):
    draft = session.draft(rows, torch.zeros(len(rows), dtype=torch.int64), draft_length)
    if draft is None:
        return [[]] * len(rows)
    assert draft.probs_RKV is None
    lengths = [draft.token_ids_RK.shape[1]] * len(rows) if draft.num_drafted_R is None else draft.num_drafted_R.tolist()
    return [tokens[:length] for tokens, length in zip(draft.token_ids_RK.tolist(), lengths, strict=True)]


def index_of(drafter, prompt):
    drafter.memory.read()
    return drafter.memory.of(PROMPTS[prompt]).index


def remember(drafter, prompt, *responses):
    """Responses of an earlier call, in which something was looked up."""
    session = session_of(drafter, [prompt] * len(responses))
    proposals(session, [row_of(prompt, response[0]) for response in responses])
    for index, response in enumerate(responses):
        session.retire(index, response)


def test_earlier_responses_to_the_prompt_are_followed_by_their_number():
    drafter = drafter_of()
    remember(drafter, 0, [5, 6, 0], [5, 7, 0], [5, 7, 0])
    session = session_of(drafter, [0, 1])
    # 7 by 2/3.5, then 0 by 2/2.5. The other prompt never saw a 5.
    assert proposals(session, [row_of(0, 5), row_of(1, 5)]) == [[7, 0], []]


def test_a_response_is_proposed_from_its_beginning():
    """The prompt's own tokens are part of the match, so that no response token has to be there to match."""
    drafter = drafter_of(min_match=3)
    remember(drafter, 0, [5, 6, 0])
    assert proposals(session_of(drafter, [0]), [row_of(0, 5)]) == [[6, 0]]
    assert proposals(session_of(drafter, [0]), [row_of(0, 6)]) == [[]]


def test_the_group_in_progress_is_learned_from():
    session = session_of(drafter_of(), [0, 0, 1])
    rows = [row_of(0, 5, 6, 7, 8), row_of(0, 9, 6), row_of(1, 6)]
    assert proposals(session, rows) == [[], [7, 8], []]
    rows[1].token_ids += [7, 8, 3, 3, 5]
    assert proposals(session, rows)[1][:2] == [6, 7]


def test_a_row_learns_from_its_own_tokens():
    assert proposals(session_of(drafter_of(), [0]), [row_of(0, 5, 6, 7, 5)], 2) == [[6, 7]]


def test_rounds_without_a_draft_are_made_up_for():
    """Where k is 0 nothing is asked for; the tokens of that round are noted in the next."""
    session = session_of(drafter_of(), [0, 0])
    rows = [row_of(0, 5), row_of(0, 9)]
    proposals(session, rows)
    rows[0].token_ids += [6, 7, 8]
    rows[1].token_ids += [6]
    assert proposals(session, rows) == [[], [7, 8]]


def test_the_end_of_a_response_is_remembered_once():
    """retire() brings the tokens since the last draft, and none of those before it again."""
    drafter = drafter_of()
    session = session_of(drafter, [0, 0])
    rows = [row_of(0, 5, 6), row_of(0, 4, 6)]
    proposals(session, rows)
    session.retire(0, [5, 6, 7])
    session.move_row(1, 0)
    assert proposals(session, [rows[1]]) == [[7]]
    index = index_of(drafter, 0)
    assert [index.count(run) for run in ([5, 6, 7], [5, 6], [6], [1, 2, 5])] == [1, 1, 2, 1]


def test_a_refilled_row_begins_anew():
    drafter = drafter_of()
    session = session_of(drafter, [0])
    proposals(session, [row_of(0, 5, 6)])
    session.retire(0, [5, 6])
    session.admit(torch.tensor([0]), torch.tensor([1]), torch.tensor([5]))
    assert proposals(session, [row_of(1, 5)]) == [[]]
    assert index_of(drafter, 1).count([3, 4, 5]) == 1


def test_responses_without_a_lookup_are_remembered_too():
    drafter = drafter_of()
    session = session_of(drafter, [0, 0, 1])
    for row, response in enumerate([[5, 6, 0], [5, 7, 0], [9]]):
        session.retire(row, response)
    index = index_of(drafter, 0)
    assert [index.count(run) for run in ([5], [1, 2, 5, 6], [5, 7, 0], [9])] == [2, 1, 1, 0]
    assert drafter.memory.num_stored_tokens == 2 + 3 + 3 + 2 + 1


def test_no_end_is_passed():
    """What ended a response was followed by nothing, by whatever shorter match."""
    drafter = drafter_of()
    remember(drafter, 0, [5, 0], [6, 7, 0])
    assert proposals(session_of(drafter, [0]), [row_of(0, 5)]) == [[0]]


@pytest.mark.parametrize("limits", [(0, 2), (3, 2)])
def test_limits_are_checked(limits):
    with pytest.raises(ValueError, match=r"min_match_tokens = \d, max_match_tokens = 2"):
        SuffixDrafter(*limits, max_stored_tokens=10)
