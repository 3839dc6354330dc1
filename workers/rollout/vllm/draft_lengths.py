"""The controller of draft lengths for a vLLM engine: what rounds take is measured before it can choose."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

from workers.algo.draft_length import DraftLengthController, Round
from workers.algo.first_costs import RoundTime
from workers.algo.round_costs import CostTable
from workers.rollout.draft_lengths import FixedDraftLength, lengthened, measured_numbers
from workers.rollout.engine import SamplingParams
from workers.rollout.vllm.sampling import vllm_params

_NUM_REPEATS = 4
"""Of each number of sequences, half of them at the beginning of responses and half further on."""
_STEPS_OF_EACH = 3
"""The first drafts so many tokens and verifies what was drafted before, the second pays for the change."""


class Measurable(Protocol):
    """What of an engine is needed here."""

    shape: Any

    def add(self, prompts: Sequence[list[int]], vllm_sampling_params: Any) -> None: ...
    def step(self) -> list[Any]: ...
    def pad_drafts(self, length: int | None) -> None: ...
    def abort(self, num_requests: int) -> None: ...
    def begin(self, seed: int, lengths: Any, is_speculating: bool, recorded: Any, evident: Any) -> None: ...
    def finish(self, remember: bool) -> Any: ...


class StepTimes(FixedDraftLength):
    """One length at a time, given from outside; keeps the last step's time."""

    def __init__(self, max_length: int) -> None:
        super().__init__(max_length)
        self.length = max_length
        self.last: RoundTime | None = None
        """The last step of rounds only."""

    def choose(self, num_sequences: int) -> int:
        return self.length

    choose_lookup = choose

    def observe(self, round_: Round) -> None:
        number, length, context, *_, seconds = round_
        self.last = RoundTime(number, length, context, seconds)


def measured_controller(
    engine: Measurable, prompts: Sequence[Sequence[int]], params: SamplingParams
) -> DraftLengthController:
    """A controller that knows what rounds take on the present weights and these prompts."""
    shape = engine.shape
    longest = shape.draft_length
    lengths = sorted({0, 1, (longest + 1) // 2, longest})
    measured = [
        round_
        for number in measured_numbers(shape.max_batch_size)
        for repeat in range(_NUM_REPEATS)
        for round_ in _measure(engine, number, lengths, prompts, params, is_far=repeat % 2 == 1)
    ]
    return DraftLengthController(longest, CostTable(measured, longest))


def _measure(
    engine: Measurable,
    number: int,
    lengths: Sequence[int],
    prompts: Sequence[Sequence[int]],
    params: SamplingParams,
    *,
    is_far: bool,
) -> list[RoundTime]:
    """Rounds of each length on so many sequences, as far as they go."""
    num_new = 2 + _STEPS_OF_EACH * sum(length + 1 for length in lengths) + engine.shape.draft_length
    room = max(1, engine.shape.max_sequence_tokens - num_new)
    before = params.max_new_tokens // 2 if is_far else 0
    some = [lengthened(prompts[i % len(prompts)], before)[:room] for i in range(number)]
    num_new = min(num_new, engine.shape.max_sequence_tokens - max(map(len, some)))
    times = StepTimes(max(engine.shape.draft_length, 1))
    times.length = lengths[-1]
    engine.pad_drafts(lengths[-1])
    engine.begin(params.seed, times, True, (), ())
    endless = vllm_params(replace(params, max_new_tokens=num_new), frozenset())
    engine.add(some, endless)
    measured = []
    try:
        while times.last is None or times.last[:1] != (number,):
            if engine.step():
                return measured
        for length in reversed(lengths):
            times.length = length
            engine.pad_drafts(length)
            for _ in range(_STEPS_OF_EACH):
                if engine.step():
                    return measured
            if times.last[:2] == (number, length):
                measured.append(times.last)
    finally:
        engine.pad_drafts(None)
        engine.abort(number)
        engine.finish(False)
    return measured
