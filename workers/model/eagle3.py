"""The EAGLE-3 draft head (Li et al. 2025, arXiv:2503.01840), as trained.

One decoder layer reads, at position t, the policy's fused features g_t and the embedding of token t + 1, and scores
token t + 2. To draft further it takes its own output in the place of g. Names of parameters and buffers are those that
vLLM's Eagle3LlamaForCausalLM loads.

Shape suffixes: B sequences, T positions, N start positions of a draft, V vocabulary, D the head's hidden size, P the
policy's, I input (2 * D), F features (taps * P), H query heads, K key and value heads, E head dimension.
"""

from dataclasses import dataclass, field, replace

import torch
from torch import Tensor, nn

from workers.model.config import ModelConfig
from workers.model.draft import PolicyPass, draw_weights
from workers.model.layers import RMSNorm, SwiGlu, rotate, split_heads
from workers.model.qwen3 import Qwen3Policy
from workers.model.unroll import UnrolledDraft

_INITIAL_FEATURE_SCALE = 0.01
"""Scales of 1, 0.1, 0.02 and 0.005 gave acceptance lengths of 3.0, 4.1, 4.3 and 4.4 after 60 steps of training."""


def default_tap_layers(num_layers: int) -> tuple[int, int, int]:
    """A low, a middle and a high layer. Raises ValueError below three layers, which have no three to tap.

    Deep policies tap as EAGLE-3 does; in shallow ones its high layer would be a middle one, so the last is taken.
    """
    if num_layers < 3:
        raise ValueError(f"num_hidden_layers = {num_layers}: an EAGLE-3 head taps three, so there must be at least 3")
    if num_layers < 8:
        return min(1, num_layers - 3), num_layers // 2, num_layers - 1
    return 1, num_layers // 2 - 1, num_layers - 4


@dataclass(frozen=True, slots=True)
class EagleConfig:
    """Shape of the draft head."""

    policy: ModelConfig
    """The policy it drafts for."""
    tap_layers: tuple[int, ...] = field(default=())
    """Layers of the policy whose outputs are fused; default_tap_layers where not given."""
    draft_vocab_size: int | None = None
    """Tokens that it can propose; None for all."""
    layer: ModelConfig | None = None
    """The head's own widths, heads, eps and rope_theta; the policy's where not given."""
    norm_before_residual: bool = False
    """Whether the residual stream starts from the normed feature; else from the feature as it is."""

    def __post_init__(self) -> None:
        num_layers = self.policy.num_hidden_layers
        taps = self.tap_layers or default_tap_layers(num_layers)
        if outside := [tap for tap in taps if not 0 <= tap < num_layers]:
            raise ValueError(f"tap_layers = {list(taps)}: {outside[0]} is not a layer of a policy with {num_layers}")
        object.__setattr__(self, "tap_layers", tuple(taps))
        size, num_tokens = self.draft_vocab_size, self.policy.vocab_size
        if size is not None and not 1 <= size <= num_tokens:
            raise ValueError(f"draft_vocab_size = {size}: must be between 1 and the policy's vocabulary, {num_tokens}")
        if size == num_tokens:
            object.__setattr__(self, "draft_vocab_size", None)
        object.__setattr__(self, "layer", replace(self.layer or self.policy, num_hidden_layers=1))

    @property
    def shape(self) -> ModelConfig:
        """Of the head."""
        assert self.layer is not None
        return self.layer


class DraftAttention(nn.Module):
    """The projections of grouped-query attention over embedding and feature side by side (2 D in, D out)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        d, e = config.hidden_size, config.head_dim
        self.head_dim = e
        self.q_proj = nn.Linear(2 * d, config.num_attention_heads * e, bias=False)
        self.k_proj = nn.Linear(2 * d, config.num_key_value_heads * e, bias=False)
        self.v_proj = nn.Linear(2 * d, config.num_key_value_heads * e, bias=False)
        self.o_proj = nn.Linear(config.num_attention_heads * e, d, bias=False)

    def project(self, x_BNI: Tensor, cos_NE: Tensor, sin_NE: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """See workers.model.unroll.Projections."""
        q, k, v = (
            split_heads(projection(x_BNI), self.head_dim).transpose(1, 2)
            for projection in (self.q_proj, self.k_proj, self.v_proj)
        )
        return rotate(q, cos_NE, sin_NE), rotate(k, cos_NE, sin_NE), v


class DraftLayer(nn.Module):
    """The one decoder layer."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        d, eps = config.hidden_size, config.rms_norm_eps
        self.input_layernorm = RMSNorm(d, eps)
        self.hidden_norm = RMSNorm(d, eps)
        self.self_attn = DraftAttention(config)
        self.post_attention_layernorm = RMSNorm(d, eps)
        self.mlp = SwiGlu(d, config.intermediate_size)


class Eagle3Head(UnrolledDraft):
    """The draft head. Its embedding is a frozen copy of the policy's; its lm_head starts as the policy's and learns.
    Both are narrowed where the head is."""

    def __init__(self, config: EagleConfig) -> None:
        super().__init__()
        policy, shape = config.policy, config.shape
        self.config = config
        self.embed_tokens = nn.Embedding(policy.vocab_size, shape.hidden_size)
        self.embed_tokens.weight.requires_grad_(False)
        self.fc = nn.Linear(len(config.tap_layers) * policy.hidden_size, shape.hidden_size, bias=False)
        self.midlayer = DraftLayer(shape)
        self.norm = RMSNorm(shape.hidden_size, shape.rms_norm_eps)
        self.lm_head = nn.Linear(shape.hidden_size, config.draft_vocab_size or policy.vocab_size, bias=False)
        if config.draft_vocab_size is not None:
            self.register_buffer("d2t", torch.zeros(config.draft_vocab_size, dtype=torch.int64))
            self.register_buffer("t2d", torch.zeros(policy.vocab_size, dtype=torch.bool))
            self.choose_vocabulary(torch.arange(config.draft_vocab_size))

    @property
    def tap_layers(self) -> tuple[int, ...]:
        return self.config.tap_layers

    @property
    def shape(self) -> ModelConfig:
        return self.config.shape

    @property
    def attention(self) -> DraftAttention:
        return self.midlayer.self_attn

    @property
    def vocabulary_V(self) -> Tensor | None:
        """See DraftModule: i + d2t[i] for row i of lm_head, as vLLM reads it."""
        if self.config.draft_vocab_size is None:
            return None
        return self.d2t + torch.arange(len(self.d2t), device=self.d2t.device)

    @torch.no_grad()
    def choose_vocabulary(self, token_ids_V: Tensor) -> None:
        """Propose these tokens only; called before initialize(). Raises ValueError unless they are draft_vocab_size
        tokens of the policy, each once."""
        chosen = token_ids_V.unique()
        if len(chosen) != self.config.draft_vocab_size or len(chosen) != len(token_ids_V):
            raise ValueError(f"{len(chosen)} different tokens chosen: must be {self.config.draft_vocab_size}")
        self.d2t.copy_(chosen - torch.arange(len(chosen), device=chosen.device))
        self.t2d.zero_()[chosen] = True

    @torch.no_grad()
    def initialize(self, policy: Qwen3Policy, seed: int) -> None:
        """Take embedding, final norm and head from the policy; draw the rest.

        The fused features begin small beside what the layer adds to them, so that this soon outweighs what they hold:
        the policy's next token, which is one before the head's.
        """
        draw_weights(self.parameters(), seed)
        self.fc.weight.mul_(_INITIAL_FEATURE_SCALE)
        width, vocabulary = self.config.shape.hidden_size, self.vocabulary_V
        embedding, head = policy.model.embed_tokens.weight, policy.head_weight
        if width == self.config.policy.hidden_size:
            self.norm.weight.copy_(policy.model.norm.weight)
        else:
            embedding, head = _in_width(embedding, width), _in_width(head * policy.model.norm.weight, width)
        self.embed_tokens.weight.copy_(embedding)
        self.lm_head.weight.copy_(head if vocabulary is None else head[vocabulary])

    def features(self, seen: PolicyPass) -> Tensor:
        """The taps, fused."""
        assert seen.features_BTF is not None
        return self.fc(seen.features_BTF)

    def embed(self, seen: PolicyPass) -> Tensor:
        """Normed, as everything of the token that the layer reads depends on it alone."""
        return self.midlayer.input_layernorm(self.embed_tokens(seen.token_ids_BT))

    def enter(self, embedded_BND: Tensor, hidden_BND: Tensor) -> tuple[Tensor, Tensor]:
        """The feature, or that normed, is the residual stream."""
        normed = self.midlayer.hidden_norm(hidden_BND)
        x = torch.cat([embedded_BND.to(hidden_BND.dtype), normed], dim=-1)
        return normed if self.config.norm_before_residual else hidden_BND, x

    def leave(self, residual_BND: Tensor, seen: PolicyPass) -> tuple[Tensor, Tensor]:
        """The next step reads the residual stream as it is."""
        hidden = residual_BND + self.midlayer.mlp(self.midlayer.post_attention_layernorm(residual_BND))
        return hidden, self.lm_head(self.norm(hidden))


def _in_width(weight_VP: Tensor, width: int) -> Tensor:
    """[V, D] whose rows' inner products are as near as may be to those of the given ones: W times the leading
    eigenvectors of W^T W (Eckart and Young 1936), and zeros beyond them."""
    _, vectors_PP = torch.linalg.eigh((weight_VP.T @ weight_VP).double())
    leading = vectors_PP.flip(1)[:, :width].to(weight_VP.dtype)
    return torch.nn.functional.pad(weight_VP @ leading, (0, width - leading.shape[1]))
