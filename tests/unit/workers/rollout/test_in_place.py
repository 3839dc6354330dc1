from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from workers.rollout.in_place import OnDevice, overwrite
from workers.rollout.packed_weights import PackedPolicy


@dataclass(frozen=True)
class Layer:
    weight: Tensor
    bias: Tensor | None
    size: int


class Packed:
    def __init__(self, value, size=3):
        self.layers = (Layer(torch.full((2,), value), None, size), Layer(torch.full((3,), value), torch.ones(1), 4))
        self.scale = torch.tensor(value)


def test_every_tensor_takes_the_new_values_where_it_lies():
    target, source = Packed(1.0), Packed(5.0)
    places = [layer.weight.data_ptr() for layer in target.layers]
    overwrite(target, source)
    assert [layer.weight.tolist() for layer in target.layers] == [[5.0] * 2, [5.0] * 3]
    assert target.scale.item() == 5.0
    assert [layer.weight.data_ptr() for layer in target.layers] == places
    source.scale.zero_()
    assert target.scale.item() == 5.0


def test_a_packed_policy_becomes_the_other(models, make_models):
    config = models.policy.config
    mine, theirs = (
        PackedPolicy.pack(m.policy.state_dict(), config, torch.float32) for m in (models, make_models(seed=9))
    )
    x = torch.randn(2, 1, config.hidden_size)
    layer, head = mine.layers[1], mine.head
    assert not torch.equal(layer.gated(x), theirs.layers[1].gated(x))
    overwrite(mine, theirs)
    for name in ("qkv", "gated"):
        assert torch.equal(getattr(layer, name)(x), getattr(theirs.layers[1], name)(x))
    assert torch.equal(head(x), theirs.head(x))
    assert torch.equal(layer.qk_norm_HE, theirs.layers[1].qk_norm_HE)
    assert torch.equal(mine.embedding_VD, theirs.embedding_VD)


def test_what_differs_in_more_than_values_is_refused():
    with pytest.raises(ValueError, match="weights with 4 cannot replace those with 3: make a new engine"):
        overwrite(Packed(1.0), Packed(1.0, size=4))
    with pytest.raises(ValueError, match=r"with torch.float32 \[3\] cannot replace those with torch.float32 \[2\]"):
        overwrite(torch.ones(2), torch.ones(3))
    with pytest.raises(ValueError, match="None cannot replace"):
        overwrite(Packed(1.0).scale, None)


def test_a_state_on_a_device_moves_what_is_asked_for():
    class Watched(dict):
        asked = 0

        def __getitem__(self, name):
            self.asked += 1
            return super().__getitem__(name)

    state = Watched(a=torch.ones(2), b=torch.zeros(1))
    moved = OnDevice(state, torch.device("meta"))
    assert "a" in moved
    assert "c" not in moved
    assert len(moved) == 2
    assert list(moved) == ["a", "b"]
    assert state.asked == 0
    assert moved["a"].device.type == "meta"
