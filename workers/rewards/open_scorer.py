"""The scorer of a run, whatever its reward."""

from collections.abc import Callable, Sequence

from contract.config import RunConfig
from contract.config.reward import ExactReward
from contract.config.task import ArithmeticTask
from workers.rewards.arithmetic import arithmetic_reward
from workers.rewards.exact import exact_reward
from workers.rewards.local import LocalScorer
from workers.rewards.pool import ScoringPool
from workers.rewards.scorer import Scorer


def open_scorer(config: RunConfig, allowed_modules: Sequence[str], interrupt: Callable[[], None]) -> Scorer:
    """Make the scorer and its processes.

    allowed_modules: those of which the cluster's registration allows a reward function. interrupt: called again and
    again while responses are scored; may raise to end the wait. Raises ValueError naming field, value and mend where
    the configured reward cannot be had.
    """
    if isinstance(config.task, ArithmeticTask):
        return LocalScorer(arithmetic_reward)
    reward = config.task.reward
    if isinstance(reward, ExactReward):
        return LocalScorer(lambda text, answer: exact_reward(text, answer, reward.mark))
    return ScoringPool(reward, allowed_modules, interrupt)
