import dataclasses

import pytest
import torch

from workers.rollout import packed_weights
from workers.rollout.packed_weights import PackedDraft, PackedPolicy, pack_linear

X = torch.randn(3, 2, 32, generator=torch.Generator().manual_seed(0))
WEIGHT = torch.randn(24, 32, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("has_onednn", [True, False])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.bfloat16, 3e-2)])
def test_product_is_that_of_the_weight(monkeypatch, has_onednn, dtype, tolerance):
    if not has_onednn:
        monkeypatch.setattr(packed_weights, "_has_onednn_bfloat16", lambda: False)
    y = pack_linear(WEIGHT, dtype)(X.to(dtype))
    assert y.dtype == dtype
    torch.testing.assert_close(y.float(), X @ WEIGHT.T, atol=tolerance * 20, rtol=tolerance)


def test_packing_copies(models):
    weight = WEIGHT.clone()
    product = pack_linear(weight, torch.float32)
    weight.zero_()
    assert product(X).abs().sum() > 0


def test_missing_and_misshapen_tensors_are_named(models):
    state = models.policy.state_dict()
    config = models.policy.config
    without = {name: tensor for name, tensor in state.items() if name != "model.layers.1.mlp.up_proj.weight"}
    with pytest.raises(
        ValueError, match=r"model\.layers\.1\.mlp\.up_proj\.weight is missing from the policy's weights"
    ):
        PackedPolicy.pack(without, config, torch.float32)
    with pytest.raises(ValueError, match=r"model\.norm\.weight has shape \[31\], but the policy needs \[32\]"):
        PackedPolicy.pack(state | {"model.norm.weight": torch.ones(31)}, config, torch.float32)
    head_state = {name: tensor for name, tensor in models.head.state_dict().items() if name != "fc.weight"}
    with pytest.raises(ValueError, match=r"fc\.weight is missing from the draft head's weights"):
        PackedDraft.pack(head_state, models.head.config, torch.float32)


def test_a_draft_is_computed_with_its_own_eps(models):
    config = models.policy.config
    packed = PackedPolicy.pack(models.policy.state_dict(), config, torch.float32)
    x = torch.full((1, 1, 4), 2.0)
    for eps in (config.rms_norm_eps, 12.0):
        operations = packed.operations_for(dataclasses.replace(config, rms_norm_eps=eps))
        torch.testing.assert_close(operations.add_norm(x, None), x / (4 + eps) ** 0.5)
