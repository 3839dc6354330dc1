"""The EAGLE-3 draft head (Li et al. 2025, arXiv:2503.01840), as trained.

One decoder layer reads, at position t, the policy's fused features g_t and the embedding of token t + 1, and scores
token t + 2. To draft further it takes its own output in the place of g. Parameter names are those that vLLM's
LlamaForCausalLMEagle3 loads.

Shape suffixes: B sequences, T positions, N start positions of a draft, V vocabulary, D hidden size, I input (2 * D),
F features (taps * D), H query heads, E head dimension.
"""

from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from workers.model.config import ModelConfig
from workers.model.layers import RMSNorm, SwiGlu, rotary_tables, rotate, split_heads
from workers.model.qwen3 import Qwen3Policy


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
    """The policy it drafts for. The head has its width, heads, vocabulary, eps and rope_theta."""
    tap_layers: tuple[int, ...] = field(default=())
    """Layers of the policy whose outputs are fused; default_tap_layers where not given."""

    def __post_init__(self) -> None:
        num_layers = self.policy.num_hidden_layers
        taps = self.tap_layers or default_tap_layers(num_layers)
        if outside := [tap for tap in taps if not 0 <= tap < num_layers]:
            raise ValueError(f"tap_layers = {list(taps)}: {outside[0]} is not a layer of a policy with {num_layers}")
        object.__setattr__(self, "tap_layers", tuple(taps))


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
        """Rotated queries and keys, and values, each [B, H, N, E]; keys and values repeated for every query head."""
        q, k, v = (
            split_heads(projection(x_BNI), self.head_dim).transpose(1, 2)
            for projection in (self.q_proj, self.k_proj, self.v_proj)
        )
        num_groups = q.shape[1] // k.shape[1]
        return (
            rotate(q, cos_NE, sin_NE),
            rotate(k, cos_NE, sin_NE).repeat_interleave(num_groups, dim=1),
            v.repeat_interleave(num_groups, dim=1),
        )


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


class Eagle3Head(nn.Module):
    """The draft head. Its embedding is a frozen copy of the policy's; its lm_head starts as the policy's and learns."""

    def __init__(self, config: EagleConfig) -> None:
        super().__init__()
        policy = config.policy
        self.config = config
        self.embed_tokens = nn.Embedding(policy.vocab_size, policy.hidden_size)
        self.embed_tokens.weight.requires_grad_(False)
        self.fc = nn.Linear(len(config.tap_layers) * policy.hidden_size, policy.hidden_size, bias=False)
        self.midlayer = DraftLayer(policy)
        self.norm = RMSNorm(policy.hidden_size, policy.rms_norm_eps)
        self.lm_head = nn.Linear(policy.hidden_size, policy.vocab_size, bias=False)

    @torch.no_grad()
    def initialize(self, policy: Qwen3Policy, seed: int) -> None:
        """Take embedding, final norm and head from the policy; draw the rest, normal with std 1 / sqrt(3 fan-in)."""
        generator = torch.Generator(device=self.fc.weight.device).manual_seed(seed)
        for parameter in self.parameters():
            if parameter.ndim == 2:
                parameter.normal_(std=(3 * parameter.shape[1]) ** -0.5, generator=generator)
            else:
                parameter.fill_(1.0)
        self.embed_tokens.weight.copy_(policy.model.embed_tokens.weight)
        self.norm.weight.copy_(policy.model.norm.weight)
        self.lm_head.weight.copy_(policy.head_weight)

    def forward(self, features_BTF: Tensor, token_ids_BT: Tensor, unroll_length: int) -> list[Tensor]:
        """Scores of the drafts that would start at every position: the training-time test of EAGLE-3, section 3.2.

        features_BTF: the policy's, detached. Step s of the result is [B, N - s, V] with N = T - 2; its row i scores
        token i + s + 2 as the s-th further draft step would after the policy's features up to position i, the drafted
        tokens being those of token_ids_BT. Step 0 reads the policy's features; step s > 0 reads the output of step
        s - 1, and attends to the policy's positions up to i and to its own s drafted ones, exactly as in generation.
        """
        config, num_starts = self.config.policy, token_ids_BT.shape[1] - 2
        cos_TE, sin_TE = rotary_tables(num_starts, config.head_dim, config.rope_theta, token_ids_BT.device)
        hidden = self.fc(features_BTF[:, :num_starts])
        embedded_BTD = self.midlayer.input_layernorm(self.embed_tokens(token_ids_BT))
        keys: list[Tensor] = []
        values: list[Tensor] = []
        logits = []
        for step in range(unroll_length):
            hidden = hidden[:, : num_starts - step]
            read = slice(step + 1, num_starts + 1)
            x = torch.cat([embedded_BTD[:, read].to(hidden.dtype), self.midlayer.hidden_norm(hidden)], dim=-1)
            # Start i has drafted `step` tokens, so it stands at position i + step.
            query, key, value = self.midlayer.self_attn.project(x, cos_TE[step:], sin_TE[step:])
            keys.append(key)
            values.append(value)
            hidden = hidden + self.midlayer.self_attn.o_proj(_attend(query, keys, values).transpose(1, 2).flatten(2))
            hidden = hidden + self.midlayer.mlp(self.midlayer.post_attention_layernorm(hidden))
            logits.append(self.lm_head(self.norm(hidden)))
        return logits


def _attend(query_BHNE: Tensor, keys: list[Tensor], values: list[Tensor]) -> Tensor:
    """Start i attends to step 0's keys up to i, which hold the policy's features, and to key i of every later step."""
    if len(keys) == 1:
        return F.scaled_dot_product_attention(query_BHNE, keys[0], values[0], is_causal=True)
    num_starts, scale = query_BHNE.shape[2], query_BHNE.shape[3] ** -0.5
    own_keys = torch.stack([key[:, :, :num_starts] for key in keys[1:]], dim=3)
    own_values = torch.stack([value[:, :, :num_starts] for value in values[1:]], dim=3)
    after = torch.ones(num_starts, num_starts, dtype=torch.bool, device=query_BHNE.device).triu(1)
    context = (query_BHNE @ keys[0][:, :, :num_starts].transpose(-1, -2)).masked_fill(after, float("-inf"))
    own = (query_BHNE.unsqueeze(3) * own_keys).sum(-1)
    weights = (torch.cat([context, own], dim=-1).float() * scale).softmax(-1).to(query_BHNE.dtype)
    from_context = weights[..., :num_starts] @ values[0][:, :, :num_starts]
    return from_context + (weights[..., num_starts:].unsqueeze(-1) * own_values).sum(3)
