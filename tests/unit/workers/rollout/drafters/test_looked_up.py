from contract.config.drafter import NgramDrafter, SuffixDrafter
from workers.rollout.drafters import ngram, suffix
from workers.rollout.drafters.looked_up import looked_up_drafting


def test_ngram_settings_are_taken_over():
    config = NgramDrafter(draft_length=5, min_match_tokens=3, max_match_tokens=7, draft_length_control="fixed")
    drafting = looked_up_drafting(config)
    drafter = drafting.build(None, None)
    assert isinstance(drafter, ngram.NgramDrafter)
    assert list(drafter.lengths) == [3, 4, 5, 6, 7]
    assert (drafting.draft_length, drafting.has_weights, drafting.is_controlled) == (5, False, False)


def test_suffix_settings_are_taken_over():
    config = SuffixDrafter(min_match_tokens=3, max_match_tokens=7, max_stored_tokens=99)
    drafting = looked_up_drafting(config)
    drafter = drafting.build(None, None)
    assert isinstance(drafter, suffix.SuffixDrafter)
    assert (drafter.min_match_tokens, drafter.max_match_tokens) == (3, 7)
    assert drafter.memory.max_stored_tokens == 99
    assert drafting.is_controlled
