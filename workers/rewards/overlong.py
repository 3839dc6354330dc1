"""What the length of a response costs."""


def soft_overlong_penalty(num_tokens: int, max_new_tokens: int, buffer_tokens: int) -> float:
    """Share of the penalty in [0, 1]: max(0, num_tokens - (max_new_tokens - buffer_tokens)) / buffer_tokens.

    All arguments in tokens of the response, its end of sequence included; max_new_tokens is L_max and buffer_tokens
    L_cache of DAPO (arXiv:2503.14476, equation 13, there with the sign turned round).
    """
    return min(1.0, max(0, num_tokens - (max_new_tokens - buffer_tokens)) / buffer_tokens)
