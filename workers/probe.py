"""The speedup probe: the same prompts with and without speculation, on the same engine, in turns."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from workers.rollout.engine import RolloutEngine, SamplingParams

NUM_PAIRS = 4
_WARMING_TOKENS = 8
_STUDENT_T_975 = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306}
"""Quantile 0.975 of Student's t by degrees of freedom."""
_NORMAL_975 = 1.959964


@dataclass(frozen=True, slots=True)
class Slice:
    """One generate() call."""

    seconds: float
    num_tokens: int

    @property
    def seconds_per_token(self) -> float:
        return self.seconds / self.num_tokens


@dataclass(frozen=True, slots=True)
class Speedup:
    """Time per token of autoregressive over speculative generation, with its 95 % interval."""

    ratio: float
    low: float
    high: float


def num_probed_prompts(num_engines: int, max_batch_size: int, num_samples: int) -> int:
    """Prompts by which every engine's batch is full from the first round on, as it is in a step.

    With fewer rows a pass costs about as much but yields less, which flatters the one way more than the other.
    """
    return num_engines * math.ceil(max_batch_size / num_samples)


def measure_speedup(
    engine: RolloutEngine, prompts: Sequence[Sequence[int]], num_samples: int, params: SamplingParams
) -> Speedup:
    """Generate the prompts NUM_PAIRS times each way.

    The order within a pair alternates, so that a drift of the machine's speed cancels. The engine has its weights, but
    the trainer has had the machine since it last generated, so a few tokens are generated each way before time counts.
    Tokens are counted because the two ways draw different responses. A drafter that learns from responses
    learns nothing here, or a later slice would have an earlier one's help.
    """
    for speculate in (True, False):
        engine.generate(prompts, num_samples, _short(params), speculate=speculate, remember=False)
    autoregressive: list[Slice] = []
    speculative: list[Slice] = []
    for pair in range(NUM_PAIRS):
        for speculate in (pair % 2 == 0, pair % 2 == 1):
            drawn = replace(params, seed=params.seed + pair)
            result = engine.generate(prompts, num_samples, drawn, speculate=speculate, remember=False)
            measured = Slice(result.generation_s, sum(len(c.token_ids) for c in result.completions))
            (speculative if speculate else autoregressive).append(measured)
    return speedup_of(autoregressive, speculative)


def speedup_of(autoregressive: Sequence[Slice], speculative: Sequence[Slice]) -> Speedup:
    """Pooled ratio r = (sum s_a / sum n_a) / (sum s_s / sum n_s) and its 95 % interval.

    The interval is r exp(+- t sd / sqrt(m)), with sd the sample standard deviation of the m pairs' log ratios and t
    Student's quantile for m - 1 degrees of freedom. Seconds s, tokens n. Raises ValueError below two pairs.
    """
    if len(autoregressive) != len(speculative) or len(autoregressive) < 2:
        raise ValueError("the speedup's interval needs at least two pairs of slices")
    logs = [
        math.log(a.seconds_per_token / s.seconds_per_token) for a, s in zip(autoregressive, speculative, strict=True)
    ]
    mean = sum(logs) / len(logs)
    variance = sum((value - mean) ** 2 for value in logs) / (len(logs) - 1)
    margin = _student_t_975(len(logs) - 1) * math.sqrt(variance / len(logs))
    ratio = _pooled(autoregressive) / _pooled(speculative)
    return Speedup(ratio, ratio * math.exp(-margin), ratio * math.exp(margin))


def speedup_metrics(
    speedup: Speedup, *, step_s: float, generation_s: float, draft_s: float, acceptance_length: float
) -> dict[str, float]:
    """Catalogue metrics of one probe.

    step_s: the step as it ran, without probe, validation and checkpoint; generation_s its generation, speculative, and
    draft_s its draft training. A step that does not speculate has no draft to train, so it would have taken
    step_s - generation_s - draft_s + ratio generation_s, of which R is the share of generation; the bound is
    1 / (R / alpha + 1 - R), arXiv:2604.26779.
    """
    autoregressive_s = speedup.ratio * generation_s
    autoregressive_step_s = step_s - generation_s - draft_s + autoregressive_s
    share = autoregressive_s / autoregressive_step_s
    return {
        "speedup/generation_ratio": speedup.ratio,
        "speedup/generation_low_ratio": speedup.low,
        "speedup/generation_high_ratio": speedup.high,
        "speedup/step_ratio": autoregressive_step_s / step_s,
        "speedup/bound_ratio": 1 / (share / acceptance_length + 1 - share),
    }


def _short(params: SamplingParams) -> SamplingParams:
    return replace(params, max_new_tokens=min(_WARMING_TOKENS, params.max_new_tokens))


def _student_t_975(degrees: int) -> float:
    """Beyond the table by its expansion in 1 / degrees (Abramowitz and Stegun 26.7.5), to 0.2 %."""
    z = _NORMAL_975
    expanded = z + (z**3 + z) / (4 * degrees) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * degrees**2)
    return _STUDENT_T_975.get(degrees, expanded)


def _pooled(slices: Sequence[Slice]) -> float:
    return sum(s.seconds for s in slices) / sum(s.num_tokens for s in slices)
