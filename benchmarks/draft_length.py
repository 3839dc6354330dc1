"""What the controller of the draft length loses where nothing disturbs but noise: `python -m benchmarks.draft_length`.

Simulated rounds of a known cost, and of a known chance of acceptance. The first measurement is wrong by some share,
and by another that all of it has in common, for a processor does not keep its pace; rounds take longer after a change,
and the longer the sequences have grown.
Each run's tokens a second are divided by those of the best fixed length under the same noise. The costs are those of
the example's EAGLE-3 draft on one core, in steps where a row of product tiles begins.
"""

import argparse
import math
import random
import statistics
from collections.abc import Iterator

from workers.algo.draft_length import DraftLengthController, Round
from workers.algo.first_costs import RoundTime
from workers.algo.round_costs import CostTable

COSTS_US = {
    2: [560, 640, 670, 700, 740, 780, 800, 840, 860],
    8: [690, 790, 900, 960, 1120, 1200, 1440, 1400, 1725],
    32: [1180, 1750, 2300, 2800, 3150, 3480, 3920, 4290, 5000],
    64: [1980, 2900, 3700, 4600, 5400, 6300, 7300, 8300, 9700],
}
"""By number of sequences, of each draft length from 0 on, on sequences of the mean length."""
US_PER_TOKEN = {2: 0.2, 8: 1.1, 32: 7.0, 64: 17.0}
"""What each token more of every sequence adds."""
FIRST_CONTEXT, LAST_CONTEXT = 17, 120
CHANCES = (0.957, 0.93, 0.84)
"""Of a drafted token after accepted ones."""
MAX_LENGTH = 8
_COMMON_ERROR = 0.15
"""Standard deviation of its logarithm, in a first measurement."""
_SETTLING = (0.08, 0.05, 0.02)
"""What the first rounds of a length take longer."""
_ROUND_NOISE, _DRIFT, _DRIFT_MEMORY = 0.08, 0.003, 0.999
"""Standard deviations in logarithms: of single rounds, which are only ever slower, and of the machine between two."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--errors", type=float, nargs="+", default=[0.02, 0.05, 0.07], help="of the first measurement")
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=2500)
    args = parser.parse_args()
    shares = []
    for error in args.errors:
        for number in COSTS_US:
            for chance in CHANCES:
                some = [share_of_best(number, chance, error, seed, args.rounds) for seed in range(args.seeds)]
                shares += some
                print(
                    f"error {error:.2f}  batch {number:>2}  chance {chance}  mean {statistics.mean(some):.3f}", end=""
                )
                print(f"  worst {min(some):.3f}", flush=True)
    print(f"{len(shares)} runs: mean {statistics.mean(shares):.3f}, worst {min(shares):.3f}")


def share_of_best(number: int, chance: float, error: float, seed: int, num_rounds: int) -> float:
    """Tokens a second over those of the best fixed length."""
    rng = random.Random(seed)
    true_s = [1e-6 * cost for cost in COSTS_US[number]]
    common = rng.gauss(0, _COMMON_ERROR)
    slope, middle = 1e-6 * US_PER_TOKEN[number], (FIRST_CONTEXT + LAST_CONTEXT) / 2
    errors = [math.exp(common + rng.gauss(0, error)) for _ in true_s]
    measured = [
        RoundTime(number, k, context, error * (cost + slope * (context - middle)))
        for k, (cost, error) in enumerate(zip(true_s, errors, strict=True))
        for context in (middle - 30, middle + 30)
    ]
    controller = DraftLengthController(MAX_LENGTH, CostTable(measured, MAX_LENGTH))
    tokens, seconds, fixed_s = 0, 0.0, [0.0] * (MAX_LENGTH + 1)
    last, since, context = 0, 0, float(LAST_CONTEXT)
    for noise in _noise(rng, num_rounds):
        if context >= LAST_CONTEXT:
            context = FIRST_CONTEXT
            controller.begin()
        length = controller.choose(number)
        accepted = _accepted(rng, number, chance, length)
        last, since = length, since + 1 if length == last else 0
        longer = 1 + _SETTLING[since] if since < len(_SETTLING) else 1.0
        taken_s = (true_s[length] + slope * (context - middle)) * noise * longer
        controller.observe(Round(number, length, context, [number] * length, accepted, 0, taken_s))
        tokens += number + sum(accepted)
        seconds += taken_s
        context += 1 + sum(accepted) / number
        fixed_s = [taken + cost * noise for taken, cost in zip(fixed_s, true_s, strict=True)]
    expected = [number * num_rounds * sum(chance**i for i in range(k + 1)) for k in range(MAX_LENGTH + 1)]
    return tokens / seconds / max(n / taken for n, taken in zip(expected, fixed_s, strict=True))


def _noise(rng: random.Random, num_rounds: int) -> Iterator[float]:
    """By how much each round takes longer."""
    drift = 0.0
    for _ in range(num_rounds):
        drift = _DRIFT_MEMORY * drift + rng.gauss(0, _DRIFT)
        yield math.exp(drift + abs(rng.gauss(0, _ROUND_NOISE)))


def _accepted(rng: random.Random, number: int, chance: float, length: int) -> list[int]:
    """Sequences with the token at each position accepted."""
    accepted = [0] * length
    for _ in range(number):
        for position in range(length):
            if rng.random() >= chance:
                break
            accepted[position] += 1
    return accepted


if __name__ == "__main__":
    main()
