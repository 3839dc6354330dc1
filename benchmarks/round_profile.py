"""Where a round's time goes, and the bound that its passes are up against, both measured on the machine.

The bound of a pass is the larger of two times: that of reading its weights and what it attends to, at the rate at which
this machine was seen to read as much memory; and that of its products, at the highest rate at which it was seen to
multiply. Nothing is assumed of the hardware.
"""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from workers.model.config import ModelConfig
from workers.rollout.decoder import policy_forward
from workers.rollout.generation import Generation
from workers.rollout.packed_weights import pack_linear

_REPEATS = 15
_LARGEST_PRODUCT = {"cpu": 2048, "cuda": 8192}
_NUM_PRODUCT_ROWS = {"cpu": 256, "cuda": 8192}


@dataclass(frozen=True, slots=True)
class Work:
    """What a pass cannot do without."""

    num_bytes: float
    """Read from memory."""
    num_operations: float
    """Multiplications and additions."""

    def __add__(self, other: "Work") -> "Work":
        return Work(self.num_bytes + other.num_bytes, self.num_operations + other.num_operations)

    def __mul__(self, times: int) -> "Work":
        return Work(self.num_bytes * times, self.num_operations * times)


@dataclass(frozen=True, slots=True)
class Machine:
    """What the device was seen to do."""

    bytes_per_s: float
    operations_per_s: float

    def bound_s(self, work: Work) -> float:
        """Reading and multiplying at once."""
        return max(work.num_bytes / self.bytes_per_s, work.num_operations / self.operations_per_s)

    def limit(self, work: Work) -> str:
        """What the bound is one of."""
        reading = work.num_bytes / self.bytes_per_s
        return "reading" if reading >= work.num_operations / self.operations_per_s else "products"


@dataclass(frozen=True, slots=True)
class RoundProfile:
    """Medians over rounds of one number of sequences and one draft length, in seconds."""

    num_sequences: int
    draft_length: int
    total_s: float
    """Of the round as it runs, nothing waited for in between."""
    draft_s: float
    pass_s: float
    """The policy's layers and head."""
    verify_s: float
    """Probabilities, acceptance and what is drawn."""
    note_s: float
    """What the drafter does with the outcome."""
    host_s: float
    """Reading tokens from the device and counting them; what is left of the total when no part is waited for."""
    pass_bound_s: float
    draft_bound_s: float
    limit: str
    """Of the policy's pass."""


def pass_work(
    config: ModelConfig, num_sequences: int, num_new: int, num_read: int, *, weight_bytes: int, cache_bytes: int
) -> Work:
    """All layers and the head over num_new tokens a sequence, which attend to num_read positions, over all sequences.

    A layer has D (2 H E + 2 K E + 3 I) weights, the head D V; each takes 2 operations a token. Attention takes 4 H E a
    pair of new token and position, and reads 2 K E numbers a position, once for all new tokens of its sequence.
    """
    d, h, k, e = config.hidden_size, config.num_attention_heads, config.num_key_value_heads, config.head_dim
    num_layers = config.num_hidden_layers
    num_weights = num_layers * d * (2 * h * e + 2 * k * e + 3 * config.intermediate_size) + d * config.vocab_size
    cache = Work(2 * k * e * num_layers * num_read * cache_bytes, 4 * h * e * num_layers * num_new * num_read)
    return matrix_work(num_weights, num_sequences * num_new, weight_bytes) + cache


def matrix_work(num_weights: int, num_tokens: int, weight_bytes: int) -> Work:
    """Matrices of so many weights read once, for num_tokens tokens."""
    return Work(num_weights * weight_bytes, 2 * num_weights * num_tokens)


def measure_machine(device: torch.device, num_bytes: int, dtype: torch.dtype) -> Machine:
    """num_bytes: as much as a pass reads, since what fits a cache is read faster than what does not."""
    numbers = torch.ones(max(num_bytes // 4, 1), device=device)
    reading_s = min(seconds_of(read, device) for read in (numbers.sum, lambda: numbers.dot(numbers)))
    size, num_rows = _LARGEST_PRODUCT[device.type], _NUM_PRODUCT_ROWS[device.type]
    rates = []
    while size >= _LARGEST_PRODUCT[device.type] // 8:
        product = pack_linear(torch.randn(size, size, device=device) / size**0.5, dtype)
        x = torch.randn(num_rows, size, device=device).to(dtype)
        rates.append(2 * num_rows * size * size / seconds_of(lambda p=product, x=x: p(x), device))
        size //= 2
    return Machine(numbers.numel() * 4 / reading_s, max(rates))


def profile_round(
    generation: Generation,
    num_rounds: int,
    draft_length: int,
    machine: Machine,
    draft_weights: int,
) -> RoundProfile:
    """Run rounds of a generation that was begun, whose sequences do not end, and take them apart.

    A round is timed as it is, and again with the device waited for after each part; the policy's pass is timed by
    itself once more, to tell it from the verification with which it is one region. draft_weights: in the draft's
    matrices that each of its steps reads.
    """
    device = generation.start_R.device
    parts: dict[str, list[float]] = {name: [] for name in ("total", "draft", "verify", "note", "host", "pass")}
    for _ in range(num_rounds):
        parts["total"].append(_timed(generation._round, device, is_waited_for=False)[1])
        _run_apart(generation, parts)
        parts["pass"].append(statistics.median(_pass_alone(generation, draft_length + 1) for _ in range(3)))
    medians = {name: statistics.median(seconds) for name, seconds in parts.items()}
    config, dtype = generation.policy.config, generation.policy.dtype
    lengths = [len(row.token_ids) for row in generation.rows]
    cache = getattr(generation.cache, "dtype", torch.bfloat16).itemsize
    work = pass_work(
        *(config, len(lengths), draft_length + 1, sum(lengths)), weight_bytes=dtype.itemsize, cache_bytes=cache
    )
    draft = matrix_work(draft_weights, len(lengths), dtype.itemsize) * draft_length
    return RoundProfile(
        len(lengths),
        draft_length,
        medians["total"],
        medians["draft"],
        medians["pass"],
        max(medians["verify"] - medians["pass"], 0.0),
        medians["note"],
        medians["host"],
        machine.bound_s(work),
        machine.bound_s(draft),
        machine.limit(work),
    )


def _run_apart(generation: Generation, parts: dict[str, list[float]]) -> None:
    """A round whose parts are waited for one by one."""
    device, session = generation.start_R.device, generation.session
    watched: list[tuple[object, str]] = []
    spent: dict[str, float] = dict.fromkeys(("draft", "verify", "note"), 0.0)

    def watch(owner: object, method: str, part: str) -> None:
        run = getattr(owner, method)

        def timed(*arguments: object) -> object:
            result, seconds = _timed(lambda: run(*arguments), device)
            spent[part] += seconds
            return result

        watched.append((owner, method))
        setattr(owner, method, timed)

    watch(generation, "_draft", "draft")
    watch(generation, "_verify", "verify")
    if session is not None:
        watch(session, "observe", "note")
    try:
        total = _timed(generation._round, device)[1]
    finally:
        for owner, method in watched:
            delattr(owner, method)
    for part, seconds in spent.items():
        parts[part].append(seconds)
    parts["host"].append(total - sum(spent.values()))


def _pass_alone(generation: Generation, num_new: int) -> float:
    """Seconds of the policy's layers and head over num_new tokens a row; what it writes is overwritten by the round."""
    policy, operations = generation.policy, generation.policy.operations
    span = operations.round_span(max(len(row.token_ids) for row in generation.rows) + num_new - 1)
    token_ids_RJ = generation.last_R.unsqueeze(1).expand(-1, num_new).contiguous()

    def run(token_ids_RJ: Tensor, start_R: Tensor) -> tuple[Tensor, Tensor | None]:
        normed, features = policy_forward(policy, token_ids_RJ, start_R, span, generation.cache, generation.tap_layers)
        return policy.head(normed), features

    inputs = (token_ids_RJ, generation.start_R)
    settings = (span, generation.tap_layers)
    return _timed(lambda: operations.region("pass alone", run, inputs, settings), generation.start_R.device)[1]


def _timed(run: Callable[[], Any], device: torch.device, *, is_waited_for: bool = True) -> tuple[Any, float]:
    """Its result, and its seconds until the device is done with it, or until it returns."""
    _wait_for(device)
    began = time.perf_counter()
    result = run()
    if is_waited_for:
        _wait_for(device)
    return result, time.perf_counter() - began


def seconds_of(run: Callable[[], object], device: torch.device) -> float:
    """The median of several runs after the first."""
    return statistics.median([_timed(run, device)[1] for _ in range(_REPEATS)][1:])


def _wait_for(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
