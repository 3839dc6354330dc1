"""Which responses of a step are looked at: decided before anything is drawn, so that no choice depends on tokens."""


def evenly_spread(num_responses: int, expected_tokens: float, max_tokens: int) -> list[int]:
    """Indices of as many responses of expected_tokens each as the budget holds, at least one unless it is 0."""
    if not max_tokens:
        return []
    count = min(num_responses, max(1, int(max_tokens / expected_tokens)))
    return [i * num_responses // count for i in range(count)]
