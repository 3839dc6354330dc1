"""From a configuration to the drafters that have no weights."""

from contract.config.drafter import NgramDrafter as NgramConfig
from contract.config.drafter import SuffixDrafter as SuffixConfig
from workers.rollout.drafters.drafter import Drafter, Drafting
from workers.rollout.drafters.ngram import NgramDrafter
from workers.rollout.drafters.suffix import SuffixDrafter


def looked_up_drafting(config: NgramConfig | SuffixConfig) -> Drafting:
    """How an engine drafts by looking up. Each engine remembers what it generated itself."""

    def build(*_: object) -> Drafter:
        if isinstance(config, NgramConfig):
            return NgramDrafter(config.min_match_tokens, config.max_match_tokens)
        return SuffixDrafter(config.min_match_tokens, config.max_match_tokens, config.max_stored_tokens)

    is_controlled = config.draft_length_control == "measured"
    return Drafting(build, has_weights=False, draft_length=config.draft_length, is_controlled=is_controlled)
