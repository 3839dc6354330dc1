"""Speculative against autoregressive generation: `python -m benchmarks.rollout --policy DIR --draft DIR [--json]`.

Both run on the same engine, batch and prompts, in turns whose order alternates, on one thread. Prompts are arithmetic
problems; `--rows` batches of them are generated each turn, so that freed rows are refilled as in a training step. The
ratio is that of time per token, pooled over the turns, with its 95 % interval.
"""

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from contract.config.task import ArithmeticTask
from workers.data.arithmetic import ArithmeticProblems
from workers.data.tokenizer import TOKENIZER_FILE, Tokenizer, character_tokenizer, load_tokenizer
from workers.model.draft_checkpoint import load_draft
from workers.model.hf_checkpoint import load_policy
from workers.probe import Slice, speedup_of
from workers.rollout.engine import RolloutResult, SamplingParams, SpeculationCounters
from workers.rollout.torch_engine import TorchRolloutEngine


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    batch_size: int
    autoregressive_us_per_token: float
    speculative_us_per_token: float
    acceptance_length: float
    speedup: float
    speedup_low: float
    speedup_high: float


def main() -> None:
    args = arguments()
    torch.set_num_threads(args.threads)
    rows = list(measure_all(args))
    if args.json:
        print(json.dumps([asdict(row) for row in rows], indent=2))
        return
    print(f"k = {args.draft_length}, {args.precision}, {args.pairs} pairs, temperature {args.temperature}")
    print(
        f"{'batch':>5}  {'AR us/token':>11}  {'spec us/token':>13}  {'acceptance':>10}  {'speedup':>7}  95 % interval"
    )
    for row in rows:
        print(
            f"{row.batch_size:>5}  {row.autoregressive_us_per_token:>11.0f}  {row.speculative_us_per_token:>13.0f}  "
            f"{row.acceptance_length:>10.2f}  {row.speedup:>7.2f}  {row.speedup_low:.2f} .. {row.speedup_high:.2f}"
        )


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policy", type=Path, required=True, help="folder of a policy in Hugging Face layout")
    parser.add_argument("--draft", type=Path, required=True, help="folder of an EAGLE-3 head trained for it")
    parser.add_argument("--draft-length", type=int, default=3)
    parser.add_argument("--batch-sizes", type=int, nargs="+", default=[2, 8, 32, 64])
    parser.add_argument("--rows", type=int, default=2, help="batches of responses each turn")
    parser.add_argument("--pairs", type=int, default=5, choices=range(2, 10), metavar="2..9")
    parser.add_argument("--max-new-tokens", type=int, default=128)
    parser.add_argument("--temperature", type=float, default=1.0)
    parser.add_argument("--precision", choices=["bfloat16", "float32"], default="bfloat16")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def measure_all(args: argparse.Namespace) -> Iterator[Row]:
    policy = load_policy(args.policy)
    head = load_draft(args.draft, policy.config)
    tokenizer = tokenizer_of(args.policy)
    problems = ArithmeticProblems(ArithmeticTask(), seed=0, split="validation")
    for batch_size in args.batch_sizes:
        engine = TorchRolloutEngine(
            policy.config, tokenizer.eos_id, batch_size, args.precision, head.config, args.draft_length
        )
        engine.update_policy(policy.state_dict())
        engine.update_draft(head.state_dict())
        prompts = [tokenizer.encode(problem.prompt) for problem in problems.problems(0, batch_size * args.rows)]
        yield measure(engine, prompts, args)


def tokenizer_of(folder: Path) -> Tokenizer:
    return load_tokenizer(folder) if (folder / TOKENIZER_FILE).exists() else character_tokenizer()


def measure(engine: TorchRolloutEngine, prompts: list[list[int]], args: argparse.Namespace) -> Row:
    """Warm up once each way, then take the turns."""
    counters = SpeculationCounters()
    turns: dict[bool, list[Slice]] = {False: [], True: []}
    for speculate in (False, True):
        engine.generate(prompts, 1, SamplingParams(args.temperature, 16, 0), speculate=speculate)
    for pair in range(args.pairs):
        for speculate in (pair % 2 == 0, pair % 2 == 1):
            params = SamplingParams(args.temperature, args.max_new_tokens, pair)
            result = engine.generate(prompts, 1, params, speculate=speculate)
            turns[speculate].append(Slice(result.generation_s, num_tokens(result)))
            counters = counters + result.counters
    speedup = speedup_of(turns[False], turns[True])
    return Row(
        engine.max_batch_size,
        us_per_token(turns[False]),
        us_per_token(turns[True]),
        counters.acceptance_length or 1.0,
        speedup.ratio,
        speedup.low,
        speedup.high,
    )


def num_tokens(result: RolloutResult) -> int:
    return sum(len(completion.token_ids) for completion in result.completions)


def us_per_token(slices: list[Slice]) -> float:
    return 1e6 * sum(s.seconds for s in slices) / sum(s.num_tokens for s in slices)


if __name__ == "__main__":
    main()
