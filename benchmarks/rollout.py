"""Speculative against autoregressive generation: `python -m benchmarks.rollout --models DIR [--json]`.

DIR holds a policy's folder `policy` and, for each drafter with weights that is asked for, a folder of its name, as
`foredeck draft train` makes it. For every drafter and batch size the same prompts are generated autoregressively, with
each fixed draft length, and with the controlled one, all on engines of the same kind and in turns whose order rotates,
on one thread. A turn is `--rows` batches of responses, so that freed rows are refilled as in a training step; `--step`
adds a whole step, 16 prompts of 8 samples each at batch 32, with its long tail.

Speedup: time per token of autoregressive over speculative turns, pooled, with its 95 % interval (workers.probe). Bound:
what the best fixed length would reach if drafts cost nothing, AL(k) t(autoregressive round) / t(round that verifies k
drafted tokens), the latter measured with drafts of padding.

Share of the best, of the controlled way: its speed over that of the best fixed length, with its 95 % interval. The best
of several noisy measurements looks better than it is, so that the length that was best in even turns is judged by odd
ones and the other way round.

`--profile` takes rounds apart instead (benchmarks.round_profile). `--device cuda` runs the engines on a GPU; `--train`
first makes what DIR lacks, a policy of `--layers` and `--hidden-size` and its drafts, on the same device
(benchmarks.trained_models): by default of 300 million parameters, since on a GPU a small one measures launches.
"""

import argparse
import json
import statistics
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch

from benchmarks.round_profile import RoundProfile, measure_machine, pass_work, profile_round
from benchmarks.trained_models import Recipe, train_missing
from contract.config.drafter import (
    DraftModelDrafter,
    Eagle3Drafter,
    MtpDrafter,
    NgramDrafter,
    SuffixDrafter,
    TrainedDrafter,
)
from contract.config.task import ArithmeticTask
from workers.data.arithmetic import ArithmeticProblems
from workers.data.tokenizer import TOKENIZER_FILE, Tokenizer, character_tokenizer, load_tokenizer
from workers.model.draft_checkpoint import load_draft
from workers.model.hf_checkpoint import load_policy
from workers.probe import Slice, Speedup, speedup_of
from workers.rollout.draft_lengths import FixedDraftLength, ScheduledDraftLengths, lengthened
from workers.rollout.drafters.drafter import Drafting
from workers.rollout.drafters.looked_up import looked_up_drafting
from workers.rollout.drafters.padding import PaddingDrafter
from workers.rollout.drafters.trained import trained_drafting
from workers.rollout.engine import RolloutResult, SamplingParams, SpeculationCounters
from workers.rollout.round_log import RoundLog
from workers.rollout.torch_engine import TorchRolloutEngine

DRAFTERS = {
    "eagle3": Eagle3Drafter,
    "mtp": MtpDrafter,
    "draft_model": DraftModelDrafter,
    "ngram": NgramDrafter,
    "suffix": SuffixDrafter,
}
AUTOREGRESSIVE = "autoregressive"
CONTROLLED = "controlled"
_BOUND_TURNS = 5
_NUM_WARM_UPS = {"cpu": 1, "cuda": 4}
"""A graph is captured the second time that its size comes up."""
STEP_BATCH, STEP_PROMPTS, STEP_SAMPLES = 32, 16, 8


@dataclass
class Way:
    """One way to generate, and what its turns took."""

    name: str
    engine: TorchRolloutEngine
    slices: list[Slice] = field(default_factory=list)
    counters: SpeculationCounters = field(default_factory=SpeculationCounters)
    num_rounds: int = 0
    sum_of_lengths: int = 0

    def turn(self, prompts: list[list[int]], num_samples: int, params: SamplingParams) -> None:
        result = self.engine.generate(prompts, num_samples, params)
        self.slices.append(Slice(result.generation_s, num_tokens(result)))
        self.counters = self.counters + result.counters
        for cost in result.round_costs:
            self.num_rounds += cost.num_rounds
            self.sum_of_lengths += cost.draft_length * cost.num_rounds


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    drafter: str
    batch: str
    way: str
    us_per_token: float
    acceptance_length: float | None
    mean_draft_length: float
    speedup: float
    speedup_low: float
    speedup_high: float
    bound: float | None
    """Of the whole cell; the same in each of its rows."""
    of_best: Speedup | None = None
    """The controlled way's speed over that of the best fixed length."""


def main() -> None:
    args = arguments()
    torch.set_num_threads(args.threads)
    if args.device.type == "cuda" and not torch.cuda.is_available():
        raise SystemExit("--device cuda: torch sees no CUDA device here; give --device cpu")
    if args.train:
        trained = [name for name in args.drafters if name not in ("ngram", "suffix")]
        train_missing(args.models, trained, Recipe(args.layers, args.hidden_size, args.train_steps), args.device)
    if args.profile:
        tell_profiles([profile for name in args.drafters for profile in profile_drafter(name, args)], args)
        return
    rows = [row for name in args.drafters for row in measure_drafter(name, args)]
    if args.json:
        print(json.dumps({"settings": {k: str(v) for k, v in vars(args).items()}, "rows": [asdict(r) for r in rows]}))
        return
    print(
        f"{device_name(args.device)}, {args.precision}, {args.pairs} turns each, temperature {args.temperature}, "
        f"{args.threads} thread(s)"
    )
    columns = (
        f"{'drafter':<11} {'batch':>6}  {'way':<14} {'us/token':>8}  {'accepted':>8}  {'mean k':>6}  {'speedup':>7}"
    )
    print(f"{columns}  95 % interval   of bound      of the best fixed length")
    for row in rows:
        accepted = f"{row.acceptance_length:.2f}" if row.acceptance_length else "-"
        bound = f"{row.speedup / row.bound:.2f} of {row.bound:.2f}" if row.bound else ""
        of_best = f"{row.of_best.ratio:.3f} ({row.of_best.low:.3f} .. {row.of_best.high:.3f})" if row.of_best else ""
        print(
            f"{row.drafter:<11} {row.batch:>6}  {row.way:<14} {row.us_per_token:>8.1f}  {accepted:>8}  "
            f"{row.mean_draft_length:>6.2f}  {row.speedup:>7.2f}  {row.speedup_low:.2f} .. {row.speedup_high:.2f}  "
            f"{bound:<12}  {of_best}"
        )


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=Path, required=True, help="folder of `policy` and a folder for each draft")
    parser.add_argument("--drafters", nargs="+", choices=DRAFTERS, default=["eagle3"])
    parser.add_argument("--lengths", type=int, nargs="*", default=[1, 2, 3, 5, 7], help="fixed draft lengths")
    parser.add_argument("--max-length", type=int, default=8, help="the longest that the controller may choose")
    parser.add_argument("--batch-sizes", type=int, nargs="*", default=[2, 8, 32, 64])
    parser.add_argument("--rows", type=int, default=2, help="batches of responses each turn")
    parser.add_argument("--step", action="store_true", help="a whole step too")
    parser.add_argument(
        "--pairs", type=int, default=5, choices=range(2, 100), metavar="2..99", help="turns of each way"
    )
    parser.add_argument("--max-new-tokens", type=int, default=128)
    parser.add_argument("--temperature", type=float, default=1.0)
    parser.add_argument("--precision", choices=["bfloat16", "float32"], default="bfloat16")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", type=torch.device, default="cpu", help="cpu or cuda")
    parser.add_argument("--profile", action="store_true", help="where a round's time goes")
    parser.add_argument("--train", action="store_true", help="first make what --models lacks")
    parser.add_argument("--layers", type=int, default=24, help="of a policy that --train makes")
    parser.add_argument("--hidden-size", type=int, default=1024, help="of a policy that --train makes")
    parser.add_argument("--train-steps", type=int, default=400, help="of the policy that --train makes, and of drafts")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def measure_drafter(name: str, args: argparse.Namespace) -> Iterator[Row]:
    tokenizer = tokenizer_of(args.models / "policy")
    problems = ArithmeticProblems(ArithmeticTask(), seed=0, split="validation")
    cells = [(size, size * args.rows, 1, str(size)) for size in args.batch_sizes]
    if args.step:
        cells.append((STEP_BATCH, STEP_PROMPTS, STEP_SAMPLES, "step"))
    for batch_size, num_prompts, num_samples, label in cells:
        prompts = [tokenizer.encode(problem.prompt) for problem in problems.problems(0, num_prompts)]
        yield from measure_cell(name, batch_size, prompts, num_samples, label, args)


def measure_cell(
    name: str, batch_size: int, prompts: list[list[int]], num_samples: int, label: str, args: argparse.Namespace
) -> Iterator[Row]:
    """Every way warms up, then takes its turns; the way that begins changes from round to round of turns."""
    ways = [Way(AUTOREGRESSIVE, engine_of(None, batch_size, args))]
    for length in args.lengths:
        fixed = DRAFTERS[name](draft_length=length, draft_length_control="fixed")
        ways.append(Way(f"k = {length}", engine_of(fixed, batch_size, args)))
    controlled = DRAFTERS[name](draft_length=args.max_length, draft_length_control="measured")
    ways.append(Way(CONTROLLED, engine_of(controlled, batch_size, args)))
    for way in ways:
        for seed in range(_NUM_WARM_UPS[args.device.type]):
            way.engine.generate(
                prompts, num_samples, SamplingParams(args.temperature, args.max_new_tokens, 1000 + seed)
            )
    for pair in range(args.pairs):
        for way in ways[pair % len(ways) :] + ways[: pair % len(ways)]:
            way.turn(prompts, num_samples, SamplingParams(args.temperature, args.max_new_tokens, pair))
    bound = free_draft_bound(ways, batch_size, prompts, args)
    for way in ways:
        speedup = speedup_of(ways[0].slices, way.slices) if way is not ways[0] else Speedup(1.0, 1.0, 1.0)
        yield Row(
            name,
            label,
            way.name,
            us_per_token(way.slices),
            way.counters.acceptance_length,
            way.sum_of_lengths / way.num_rounds if way.num_rounds else 0.0,
            speedup.ratio,
            speedup.low,
            speedup.high,
            bound,
            share_of_best(ways[1:-1], way) if way is ways[-1] else None,
        )


def share_of_best(fixed: list[Way], controlled: Way) -> Speedup | None:
    """The controlled way over the fixed length that was best in the turns that do not judge; None for fewer than two
    turns of each kind, and where no length is fixed."""
    num_turns = len(controlled.slices)
    if not fixed or num_turns < 4:
        return None
    best = [min(fixed, key=lambda way: us_per_token(way.slices[1 - parity :: 2])) for parity in (0, 1)]
    return speedup_of([best[turn % 2].slices[turn] for turn in range(num_turns)], controlled.slices)


def free_draft_bound(
    ways: list[Way], batch_size: int, prompts: list[list[int]], args: argparse.Namespace
) -> float | None:
    """The largest AL(k) t(0) / t(k) over the fixed lengths, rounds timed with drafts that cost nothing; None where none
    was measured."""
    if not args.lengths:
        return None
    drafting = Drafting(lambda *_: PaddingDrafter(), has_weights=False, draft_length=max(args.lengths))
    engine = engine_with(drafting, batch_size, args)
    params = SamplingParams(args.temperature, args.max_new_tokens, 0)
    some = [lengthened(prompts[i % len(prompts)], args.max_new_tokens // 2) for i in range(batch_size)]
    measured: dict[int, list[float]] = {}
    for length in (0, *args.lengths):
        schedule = ScheduledDraftLengths([length] * _BOUND_TURNS)
        with torch.inference_mode():
            generation = engine._generation(some, 1, params, engine._drafter_or_raise(), schedule, RoundLog((), ()))
            generation.eos_token_ids = frozenset()
            generation.run(schedule.num_rounds)
        measured[length] = [taken for *_, taken in schedule.measured]
    seconds = {length: statistics.median(taken) for length, taken in measured.items()}
    lengths = zip(args.lengths, ways[1:], strict=False)
    return max((way.counters.acceptance_length or 1.0) * seconds[0] / seconds[k] for k, way in lengths)


_PROFILED_ROUNDS = 12


def profile_drafter(name: str, args: argparse.Namespace) -> Iterator[tuple[str, RoundProfile]]:
    """Rounds without a draft and with each length, by number of sequences."""
    prompts = [p.prompt for p in ArithmeticProblems(ArithmeticTask(), seed=0, split="validation").problems(0, 256)]
    tokenizer = tokenizer_of(args.models / "policy")
    machine = None
    for batch_size in args.batch_sizes:
        for length in (0, *args.lengths):
            config = DRAFTERS[name](draft_length=max(length, 1), draft_length_control="fixed")
            engine = engine_of(config, batch_size, args)
            if machine is None:
                machine = measure_machine(args.device, weights_bytes(engine), engine.dtype)
            longest = args.max_new_tokens // 2
            some = [lengthened(tokenizer.encode(prompts[i % len(prompts)]), longest) for i in range(batch_size)]
            endless = SamplingParams(args.temperature, 4 * _PROFILED_ROUNDS * (length + 1), 0)
            drafter = engine._drafter_or_raise() if length else None
            with torch.inference_mode():
                generation = engine._generation(some, 1, endless, drafter, FixedDraftLength(length), RoundLog((), ()))
                generation.eos_token_ids = frozenset()
                generation._refill(list(range(batch_size)))
                yield name, profile_round(generation, _PROFILED_ROUNDS, length, machine, draft_weights(name, args))


def weights_bytes(engine: TorchRolloutEngine) -> int:
    """What a pass reads of weights."""
    config = engine.model_config
    return pass_work(config, 1, 1, 0, weight_bytes=engine.dtype.itemsize, cache_bytes=0).num_bytes


def draft_weights(name: str, args: argparse.Namespace) -> int:
    """In the matrices of a draft but its embedding; 0 for what is looked up."""
    if name in ("ngram", "suffix"):
        return 0
    policy = load_policy(args.models / "policy")
    parameters = load_draft(args.models / name, policy.config, name).named_parameters()
    return sum(p.numel() for key, p in parameters if p.ndim == 2 and "embed" not in key)


def tell_profiles(profiles: list[tuple[str, RoundProfile]], args: argparse.Namespace) -> None:
    if args.json:
        rows = [{"drafter": name, **asdict(profile)} for name, profile in profiles]
        print(json.dumps({"settings": {k: str(v) for k, v in vars(args).items()}, "rows": rows}))
        return
    print(f"{device_name(args.device)}, {args.precision}, {args.threads} thread(s); microseconds a round")
    print("drafter     batch  k    total    draft     pass   verify     note     host  bound of pass  share  limit")
    for name, p in profiles:
        parts = (p.total_s, p.draft_s, p.pass_s, p.verify_s, p.note_s, p.host_s)
        print(
            f"{name:<11} {p.num_sequences:>5}  {p.draft_length}  {'  '.join(f'{1e6 * part:>7.0f}' for part in parts)}"
            f"  {1e6 * p.pass_bound_s:>13.0f}  {p.pass_bound_s / p.pass_s:>5.2f}  {p.limit}"
        )


def device_name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "processor"


def engine_of(
    config: TrainedDrafter | NgramDrafter | SuffixDrafter | None, batch_size: int, args: argparse.Namespace
) -> TorchRolloutEngine:
    """With its weights. Raises CheckpointError where a draft's folder is not one."""
    if config is None or isinstance(config, NgramDrafter | SuffixDrafter):
        return engine_with(looked_up_drafting(config) if config else None, batch_size, args)
    policy = load_policy(args.models / "policy")
    draft = load_draft(args.models / config.kind, policy.config, config.kind)
    engine = engine_with(trained_drafting(config, draft), batch_size, args)
    engine.update_draft(draft.export(policy))
    return engine


def engine_with(drafting: Drafting | None, batch_size: int, args: argparse.Namespace) -> TorchRolloutEngine:
    policy = load_policy(args.models / "policy")
    eos_id = tokenizer_of(args.models / "policy").eos_id
    engine = TorchRolloutEngine(policy.config, eos_id, batch_size, args.precision, drafting, args.device)
    engine.update_policy(policy.state_dict())
    return engine


def tokenizer_of(folder: Path) -> Tokenizer:
    return load_tokenizer(folder) if (folder / TOKENIZER_FILE).exists() else character_tokenizer()


def num_tokens(result: RolloutResult) -> int:
    return sum(len(completion.token_ids) for completion in result.completions)


def us_per_token(slices: list[Slice]) -> float:
    return 1e6 * sum(s.seconds for s in slices) / sum(s.num_tokens for s in slices)


if __name__ == "__main__":
    main()
