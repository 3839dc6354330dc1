"""The policy as Megatron-core builds it: this rank's part of it."""

import math
from typing import Any

import torch
import torch.nn.functional as F
from megatron.core.distributed import DistributedDataParallel, DistributedDataParallelConfig
from megatron.core.models.gpt import GPTModel
from megatron.core.transformer.transformer_config import TransformerConfig

from contract.config.trainer import MegatronTrainer
from workers.train.megatron import layers, processors
from workers.train.megatron.layout import RankLayout
from workers.train.megatron.passes import sum_gradients
from workers.train.megatron.shape import PolicyShape

_DISPATCH = {"moe_token_dispatcher_type": "alltoall"}
"""The only one that takes sequences of many lengths; it is asked for with dense models too."""


def parameter_dtype(trainer: MegatronTrainer) -> torch.dtype:
    """Of what the forward pass multiplies; the optimiser keeps float32 beside it."""
    return torch.bfloat16 if trainer.precision == "bfloat16" else torch.float32


def padded_vocabulary(shape: PolicyShape, tensor_size: int) -> int:
    """Rows of embedding and head, such that every tensor-parallel rank has as many."""
    return math.ceil(shape.dense.vocab_size / tensor_size) * tensor_size


def build_model(shape: PolicyShape, trainer: MegatronTrainer, layout: RankLayout) -> GPTModel:
    """This rank's part of the policy, its weights not yet in place."""
    stretched = {} if shape.yarn is None else {"position_embedding_type": "yarn"}
    config = transformer_config(shape, trainer)
    config.finalize_model_grads_func = sum_gradients
    return GPTModel(
        config,
        layers.block(config),
        vocab_size=padded_vocabulary(shape, trainer.tensor_parallel_size),
        max_sequence_length=shape.dense.max_position_embeddings,
        pre_process=layout.place.pipeline == 0,
        post_process=layout.is_last_stage,
        share_embeddings_and_output_weights=shape.dense.tie_word_embeddings,
        rotary_base=shape.dense.rope_theta,
        **{"position_embedding_type": "rope", **stretched},
    )


def with_gradients(model: GPTModel, trainer: MegatronTrainer) -> DistributedDataParallel:
    """The model with buffers that gradients are added up in, over micro-batches and data-parallel ranks, in float32."""
    config = DistributedDataParallelConfig(
        grad_reduce_in_fp32=True,
        overlap_grad_reduce=False,
        use_distributed_optimizer=trainer.distributed_optimizer,
    )
    wrapped = DistributedDataParallel(config=model.config, ddp_config=config, module=model)
    wrapped.broadcast_params()
    return wrapped


def transformer_config(shape: PolicyShape, trainer: MegatronTrainer) -> TransformerConfig:
    """What Megatron-core is told. Fusions are Transformer Engine's or a GPU's; without them they are off."""
    dense, is_fused = shape.dense, layers.has_transformer_engine()
    dtype = parameter_dtype(trainer)
    config = TransformerConfig(
        num_layers=dense.num_hidden_layers,
        hidden_size=dense.hidden_size,
        ffn_hidden_size=dense.intermediate_size,
        num_attention_heads=dense.num_attention_heads,
        num_query_groups=dense.num_key_value_heads,
        kv_channels=dense.head_dim,
        normalization="RMSNorm",
        layernorm_epsilon=dense.rms_norm_eps,
        qk_layernorm=True,
        activation_func=F.silu,
        gated_linear_unit=True,
        add_bias_linear=False,
        hidden_dropout=0.0,
        attention_dropout=0.0,
        tensor_model_parallel_size=trainer.tensor_parallel_size,
        pipeline_model_parallel_size=trainer.pipeline_parallel_size,
        expert_model_parallel_size=trainer.expert_parallel_size,
        expert_tensor_parallel_size=1,
        sequence_parallel=trainer.sequence_parallel and trainer.tensor_parallel_size > 1,
        variable_seq_lengths=trainer.pipeline_parallel_size > 1,
        bf16=dtype == torch.bfloat16,
        params_dtype=dtype,
        pipeline_dtype=dtype,
        # Shares of the loss are divided by the update's tokens before they are added up; nothing else divides them.
        calculate_per_token_loss=True,
        **_DISPATCH,
        perform_initialization=False,
        use_cpu_initialization=not processors.has_gpu(),
        gradient_accumulation_fusion=False,
        bias_activation_fusion=False,
        bias_dropout_fusion=False,
        masked_softmax_fusion=False,
        # The fused rotation of packed sequences leaves out the factor by which YaRN scales cos and sin.
        apply_rope_fusion=is_fused and shape.yarn is None,
        **_recompute(trainer, dense.num_hidden_layers),
        **_mixture(shape, is_fused),
    )
    for name, value in _yarn(shape).items():  # attributes that GPTModel reads, though they are no fields
        setattr(config, name, value)
    return config


def _recompute(trainer: MegatronTrainer, num_layers: int) -> dict[str, Any]:
    if trainer.recompute == "none":
        return {}
    if trainer.recompute == "selective":
        return {"recompute_granularity": "selective", "recompute_modules": ["core_attn"]}
    return {"recompute_granularity": "full", "recompute_method": "uniform", "recompute_num_layers": 1}


def _mixture(shape: PolicyShape, is_fused: bool) -> dict[str, Any]:
    """No loss balances the experts: the policy's loss is GRPO's alone."""
    if shape.mixture is None:
        return {}
    return {
        "num_moe_experts": shape.mixture.num_experts,
        "moe_router_topk": shape.mixture.num_experts_per_token,
        "moe_ffn_hidden_size": shape.mixture.intermediate_size,
        # Softmax over the chosen experts' scores is that over all, scaled to add up to 1.
        "moe_router_pre_softmax": not shape.mixture.is_normalized,
        "moe_router_load_balancing_type": "none",
        "moe_aux_loss_coeff": 0.0,
        "moe_router_dtype": "fp32",
        "moe_grouped_gemm": is_fused,
        "moe_permute_fusion": False,
    }


def _yarn(shape: PolicyShape) -> dict[str, Any]:
    yarn = shape.yarn
    if yarn is None:
        return {}
    return {
        "yarn_rotary_scaling_factor": yarn.factor,
        "yarn_original_max_position_embeddings": yarn.original_max_positions,
        "yarn_beta_fast": yarn.beta_fast,
        "yarn_beta_slow": yarn.beta_slow,
        "yarn_mscale": yarn.mscale,
        "yarn_mscale_all_dim": 0.0,
        "yarn_correction_range_round_to_int": yarn.truncate,
    }
