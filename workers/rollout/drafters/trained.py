"""From a draft in training's form to what an engine drafts with."""

from collections.abc import Callable, Mapping

from torch import Tensor

from contract.config.drafter import TrainedDrafter
from workers.model.draft import DraftModule
from workers.model.draft_model import DraftModel
from workers.model.eagle3 import Eagle3Head
from workers.model.mtp import MtpModule
from workers.rollout.drafters.draft_model import DraftModelDrafter
from workers.rollout.drafters.drafter import Drafter, Drafting
from workers.rollout.drafters.eagle3 import Eagle3Drafter
from workers.rollout.drafters.mtp import MtpDrafter, PackedMtp
from workers.rollout.packed_weights import PackedDraft, PackedPolicy


def trained_drafting(drafter: TrainedDrafter, draft: DraftModule) -> Drafting:
    """draft: of the same shape as those whose weights will come; its own are not kept."""
    pack = _packing(draft)

    def build(policy: PackedPolicy, state: Mapping[str, Tensor] | None) -> Drafter:
        assert state is not None
        return pack(policy, state)

    is_controlled = drafter.draft_length_control == "measured"
    return Drafting(build, has_weights=True, draft_length=drafter.draft_length, is_controlled=is_controlled)


def _packing(draft: DraftModule) -> Callable[[PackedPolicy, Mapping[str, Tensor]], Drafter]:
    match draft:
        case Eagle3Head(config=eagle):
            return lambda policy, state: Eagle3Drafter(PackedDraft.pack(state, eagle, policy.dtype), policy)
        case MtpModule(config=mtp):
            return lambda policy, state: MtpDrafter(PackedMtp.pack(state, mtp, policy.dtype), policy)
        case DraftModel(config=model):
            return lambda policy, state: DraftModelDrafter(PackedPolicy.pack(state, model, policy.dtype))
    raise TypeError(f"{type(draft).__name__} cannot draft in this engine")
