"""How long a scorer may take."""

from contract.config.reward import CodeReward, MathReward, PythonReward

_SANDBOX_S = 5.0
"""For starting and clearing away a sandbox, around the time of the program itself."""

ProcessReward = MathReward | CodeReward | PythonReward


def time_limit_s(reward: ProcessReward) -> float:
    """Seconds for one response. A program that is too slow is the response's fault and within the limit."""
    return reward.timeout_s + (_SANDBOX_S if isinstance(reward, CodeReward) else 0.0)
