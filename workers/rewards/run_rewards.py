"""The rewards of a run: scores, what length costs, and a count of what failed."""

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from contract.config import RunConfig
from contract.config.reward import ExactReward, OverlongConfig, PenalisedOverlong, ZeroOverlong
from contract.config.task import DatasetTask
from workers.data.problem import Problem
from workers.data.tokenizer import Tokenizer
from workers.rewards.overlong import soft_overlong_penalty
from workers.rewards.scorer import FAILURE_KINDS, Failure, Response, Scorer
from workers.rollout.engine import Completion

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Rewards:
    """One reward for each response."""

    values: list[float]
    failures: Counter[str]
    """Responses without a score, by kind of failure; their rewards are 0."""


class RunRewards:
    """Scores completions as a run's configuration says."""

    def __init__(self, config: RunConfig, scorer: Scorer, tokenizer: Tokenizer) -> None:
        self._scorer, self._tokenizer = scorer, tokenizer
        task = config.task
        self._overlong: OverlongConfig = task.overlong if isinstance(task, DatasetTask) else ZeroOverlong()
        self._can_fail = isinstance(task, DatasetTask) and not isinstance(task.reward, ExactReward)
        self._max_new_tokens = config.rollout.max_new_tokens

    def of(self, problems: Sequence[Problem], completions: Sequence[Completion]) -> Rewards:
        """The rewards of responses to the problems that they name."""
        responses = [self._response(problems[completion.prompt_index], completion) for completion in completions]
        scored = [i for i, response in enumerate(responses) if not self._is_cut(response)]
        scores: list[float | Failure] = [0.0] * len(responses)
        for i, score in zip(scored, self._scorer.score([responses[i] for i in scored]), strict=True):
            scores[i] = score
        failures = [score for score in scores if isinstance(score, Failure)]
        _tell(failures, len(scores))
        values = [
            0.0 if isinstance(score, Failure) else score - self._penalty(response)
            for score, response in zip(scores, responses, strict=True)
        ]
        return Rewards(values, Counter(failure.kind for failure in failures))

    def failure_metrics(self, area: Literal["reward", "validation"], rewards: Rewards) -> dict[str, float]:
        """How many responses got no score, by catalogue name; nothing where the scorer cannot fail."""
        if not self._can_fail:
            return {}
        by_kind = {f"{area}/num_failures_{kind}": float(rewards.failures[kind]) for kind in FAILURE_KINDS}
        return {f"{area}/num_failures": float(rewards.failures.total()), **by_kind}

    def _response(self, problem: Problem, completion: Completion) -> Response:
        tokens = completion.token_ids if completion.is_truncated else completion.token_ids[:-1]
        return Response(
            problem.prompt,
            self._tokenizer.verbatim(tokens),
            problem.answer,
            len(completion.token_ids),
            completion.is_truncated,
        )

    def _is_cut(self, response: Response) -> bool:
        return response.is_truncated and isinstance(self._overlong, ZeroOverlong)

    def _penalty(self, response: Response) -> float:
        if not isinstance(self._overlong, PenalisedOverlong):
            return 0.0
        share = soft_overlong_penalty(response.num_tokens, self._max_new_tokens, self._overlong.buffer_tokens)
        return self._overlong.penalty * share


def _tell(failures: Sequence[Failure], num_responses: int) -> None:
    """A line of the log for each kind, with the first failure of that kind."""
    for kind in FAILURE_KINDS:
        if of_kind := [failure for failure in failures if failure.kind == kind]:
            log.warning(
                "%d of %d responses got no score and count as 0 (%s). The first: %s",
                len(of_kind),
                num_responses,
                kind,
                of_kind[0].message,
            )
