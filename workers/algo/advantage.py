"""Group-relative advantages.

Shapes: P prompts, G responses per prompt (the group).
"""

import torch

_EPSILON = 1e-4


def group_advantages(rewards_PG: torch.Tensor, *, normalize: bool, leave_one_out: bool) -> torch.Tensor:
    """Advantage of each response over its group.

    A_pg = (r_pg - b_pg) / s_p

    with baseline b_pg the group's mean reward, or, with leave_one_out, the mean reward of the G - 1 other responses
    (RLOO, arXiv:2402.14740, eq. 4), which equals G / (G - 1) times the former difference; and scale s_p the group's
    sample standard deviation (divisor G - 1) plus 1e-4 with normalize, else 1 (GRPO, arXiv:2402.03300, section 4.1.2).

    rewards_PG: [P, G], unit of the reward, no gradient. Returns [P, G], exactly 0 in a group of equal rewards, so
    that such responses can be left out of the backward pass. Raises ValueError unless G >= 2.
    """
    if rewards_PG.dim() != 2 or rewards_PG.shape[1] < 2:
        raise ValueError(f"rewards must be [prompts, at least 2 responses], not {list(rewards_PG.shape)}")
    group_size = rewards_PG.shape[1]
    difference = rewards_PG - rewards_PG.mean(dim=1, keepdim=True)
    if leave_one_out:
        difference = difference * (group_size / (group_size - 1))
    if normalize:
        difference = difference / (rewards_PG.std(dim=1, keepdim=True) + _EPSILON)
    return difference.masked_fill(~informative_groups(rewards_PG)[:, None], 0.0)


def informative_groups(rewards_PG: torch.Tensor) -> torch.Tensor:
    """[P] bool: groups whose rewards differ, the only ones that teach anything."""
    return rewards_PG.amax(dim=1) > rewards_PG.amin(dim=1)
