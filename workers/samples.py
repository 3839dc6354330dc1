"""Rollouts kept for reading."""

import json
from collections.abc import Sequence
from typing import Any

from contract.telemetry.events import MAX_ANSWER, Round, Sample
from workers.data.problem import Problem
from workers.data.tokenizer import Tokenizer
from workers.rollout.engine import Completion


def sampled_rows(num_rows: int, num_samples: int) -> list[int]:
    """Rows spread evenly over a step, so that they belong to different prompts."""
    return [num_rows * i // num_samples for i in range(num_samples)]


def to_sample(
    completion: Completion, problem: Problem, tokenizer: Tokenizer, *, reward: float, advantage: float
) -> Sample:
    """One completion, whose rounds were recorded, as text and tokens."""
    rounds = [
        Round(
            drafted=r.drafted,
            num_accepted=r.num_accepted,
            emitted=r.emitted,
            draft_logprobs=r.draft_logprobs,
            policy_logprobs=r.policy_logprobs,
        )
        for r in completion.rounds
    ]
    return Sample(
        prompt=problem.prompt,
        answer=_answer(problem.answer),
        response=tokenizer.decode(completion.token_ids),
        reward=reward,
        advantage=advantage,
        is_truncated=completion.is_truncated,
        rounds=rounds,
        vocabulary={token: tokenizer.token_text(token) for token in sorted(_tokens(rounds))},
    )


def _answer(answer: Any) -> str:
    text = answer if isinstance(answer, str) else json.dumps(answer, default=str, ensure_ascii=False)
    return text if len(text) <= MAX_ANSWER else text[: MAX_ANSWER - 1] + "…"


def _tokens(rounds: Sequence[Round]) -> set[int]:
    emitted = {r.emitted for r in rounds if r.emitted is not None}
    return emitted | {token for r in rounds for token in r.drafted}
