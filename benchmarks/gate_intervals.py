"""How often 95 % intervals of a mean hold the truth on simulated runs, and how wide they are: `python -m
benchmarks.gate_intervals`.

The steps are an autoregressive process of variance 1, with or without learning: a rise by four standard deviations from
the first step to the last. Compared are the interval of gates, batch means (ten batches, or as many as hold two steps)
and the moving-block bootstrap (blocks of 1.5 n^(1/3) steps, percentiles of 400 resamples).
"""

import math
import random
import statistics
from collections.abc import Callable, Sequence

from backend.gates.means import influences, mean, spread
from backend.gates.student import t_quantile

CONFIDENCE = 0.95
NUM_SERIES = 400
NUM_RESAMPLES = 400
CASES = [(n, r, trend) for trend in (0, 4) for n in (10, 20, 40, 100) for r in (0.0, 0.3, 0.6)]


def series(generator: random.Random, n: int, r: float, trend: float) -> list[float]:
    """Its mean is 0 in expectation."""
    values, value = [], generator.gauss(0, 1)
    for i in range(n):
        values.append(value + trend * (i / (n - 1) - 0.5))
        value = r * value + math.sqrt(1 - r * r) * generator.gauss(0, 1)
    return values


def of_gates(values: Sequence[float], _: random.Random) -> float:
    return spread(influences(values), CONFIDENCE).half_width


def batch_means(values: Sequence[float], _: random.Random) -> float:
    num_batches = min(10, len(values) // 2)
    size = len(values) // num_batches
    batches = [statistics.fmean(values[i * size : (i + 1) * size]) for i in range(num_batches)]
    return t_quantile((1 + CONFIDENCE) / 2, num_batches - 1) * statistics.stdev(batches) / math.sqrt(num_batches)


def block_bootstrap(values: Sequence[float], generator: random.Random) -> float:
    n, size = len(values), max(1, round(1.5 * len(values) ** (1 / 3)))
    blocks = [statistics.fmean(values[i : i + size]) for i in range(n - size + 1)]
    count = math.ceil(n / size)
    resampled = sorted(statistics.fmean(generator.choices(blocks, k=count)) for _ in range(NUM_RESAMPLES))
    tail = round(NUM_RESAMPLES * (1 - CONFIDENCE) / 2)
    return (resampled[-1 - tail] - resampled[tail]) / 2


METHODS: dict[str, Callable[[Sequence[float], random.Random], float]] = {
    "gates": of_gates,
    "batch means": batch_means,
    "block bootstrap": block_bootstrap,
}


def main() -> None:
    print(f"| Steps | Correlation | Learning | {' | '.join(METHODS)} |")
    print("|---" * (3 + len(METHODS)) + "|")
    for n, r, trend in CASES:
        generator = random.Random(n)
        runs = [series(generator, n, r, trend) for _ in range(NUM_SERIES)]
        cells = []
        for method in METHODS.values():
            widths = [method(values, generator) for values in runs]
            covered = sum(abs(mean(values)) <= width for values, width in zip(runs, widths, strict=True))
            cells.append(f"{100 * covered / NUM_SERIES:.0f} %, ±{statistics.median(widths):.2f}")
        print(f"| {n} | {r} | {'yes' if trend else 'no'} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
