"""The protocol's sampling in vLLM's words, and its answers in ours."""

from collections.abc import Collection, Sequence
from typing import Any

from workers.rollout.engine import Completion, SamplingParams
from workers.rollout.vllm.library import new_sampling_params

_SMALLEST_TEMPERATURE = 0.01
"""Below it vLLM draws at another temperature than it is told."""


def vllm_params(params: SamplingParams, eos_token_ids: Collection[int]) -> Any:
    """Seeds are not in it: one seed for all of a call leaves the batch's drawing in one piece."""
    truncation = params.truncation
    return new_sampling_params(
        temperature=params.temperature,
        top_p=truncation.top_p,
        top_k=truncation.top_k,
        min_p=truncation.min_p,
        max_tokens=params.max_new_tokens,
        stop_token_ids=sorted(eos_token_ids),
        ignore_eos=True,  # the model's own; those above end a response
        logprobs=0,
        flat_logprobs=True,
        detokenize=False,
    )


def completion(output: Any, prompt_index: int, temperature: float) -> Completion:
    """One request's response. Greedy responses are drawn with certainty, whatever vLLM says of them."""
    token_ids = list(output.token_ids)
    logprobs = [0.0] * len(token_ids) if temperature == 0 else _logprobs(output.logprobs, token_ids)
    return Completion(prompt_index, token_ids, logprobs, output.finish_reason == "length")


def check_request(
    prompts: Sequence[Sequence[int]],
    num_samples: int,
    params: SamplingParams,
    chosen: Sequence[int],
    *,
    max_sequence_tokens: int,
    vocabulary_size: int,
    is_speculating: bool,
) -> None:
    """Raise ValueError for what cannot be generated, naming the field, the value and the mend."""
    room = max_sequence_tokens - params.max_new_tokens
    if not prompts:
        raise ValueError("prompts is empty: give at least one")
    for index, prompt in enumerate(prompts):
        if not 1 <= len(prompt) <= room:
            raise ValueError(
                f"prompts[{index}] has {len(prompt)} tokens: must have between 1 and {room}, so that max_new_tokens = "
                f"{params.max_new_tokens} fit into the engine's longest sequence, {max_sequence_tokens}"
            )
        if not all(0 <= token < vocabulary_size for token in prompt):
            raise ValueError(f"prompts[{index}] has a token outside 0 .. {vocabulary_size - 1}")
    if num_samples < 1:
        raise ValueError(f"num_samples = {num_samples}: must be at least 1")
    if params.max_new_tokens < 1:
        raise ValueError(f"max_new_tokens = {params.max_new_tokens}: must be at least 1")
    if params.temperature != 0 and not params.temperature >= _SMALLEST_TEMPERATURE:
        raise ValueError(f"temperature = {params.temperature}: must be 0 (greedy) or at least {_SMALLEST_TEMPERATURE}")
    if params.truncation.min_p > 0 and (is_speculating or params.truncation.top_p < 1):
        raise ValueError(
            f"min_p = {params.truncation.min_p}: must be 0 with a drafter or with top_p below 1: vLLM does not know it "
            "in verification, and cuts by it before top_p, not after"
        )
    if outside := [index for index in chosen if not 0 <= index < len(prompts) * num_samples]:
        raise ValueError(
            f"record_rounds_of or evidence_of has {outside[0]}: must be below {len(prompts) * num_samples}"
        )


def _logprobs(logprobs: Any, token_ids: Sequence[int]) -> list[float]:
    """Of the tokens that were drawn; vLLM puts them first at each position."""
    starts, ids, values = logprobs.start_indices, logprobs.token_ids, logprobs.logprobs
    found = [values[start] for start in starts]
    if [ids[start] for start in starts] != list(token_ids):
        raise RuntimeError("vLLM's log-probabilities are not those of the tokens that it drew")
    return found
