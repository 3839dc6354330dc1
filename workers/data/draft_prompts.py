"""Prompts that are not the task's, for a draft as one that was trained elsewhere."""

from contract.config.task import ArithmeticTask
from workers.data.arithmetic import ArithmeticProblems, WorkedProblem

_NUM_TERMS = range(2, 9)
_MAX_TERMS = (19, 99, 999, 9999)


def generic_problems(
    task: ArithmeticTask, seed: int, count: int, *, max_new_tokens: int, max_positions: int
) -> list[WorkedProblem]:
    """Sums of other sizes than the task's, in turn.

    max_positions: the policy's, prompt and response together. Raises ValueError where no other size fits.
    """
    tasks = other_sizes(task, max_new_tokens=max_new_tokens, max_positions=max_positions)
    sources = [ArithmeticProblems(of, seed, "draft_pretraining") for of in tasks]
    return [sources[index % len(sources)].problem(index // len(sources)) for index in range(count)]


def other_sizes(task: ArithmeticTask, *, max_new_tokens: int, max_positions: int) -> list[ArithmeticTask]:
    """Tasks whose worked solutions fit and whose numbers differ from the task's in count and size, or, where none of
    these fits, in one of the two."""
    fitting = [
        other
        for num_terms in _NUM_TERMS
        for max_term in _MAX_TERMS
        for other in [ArithmeticTask(num_terms=num_terms, max_term=max_term)]
        if other.longest_solution() < max_new_tokens and other.longest_prompt() + max_new_tokens <= max_positions
    ]
    in_both = [t for t in fitting if t.num_terms != task.num_terms and t.max_term != task.max_term]
    in_one = [t for t in fitting if t.num_terms != task.num_terms or t.max_term != task.max_term]
    if not in_one:
        raise ValueError(
            f"drafter.pretraining.prompts = generic: no sum of another size fits rollout.max_new_tokens = "
            f"{max_new_tokens}: raise it, or choose prompts = task"
        )
    return in_both or in_one
