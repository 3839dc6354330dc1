"""A vLLM engine in this process behind the rollout protocol."""

import time
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Literal, NamedTuple

from torch import Tensor

from workers.rollout.draft_lengths import DraftLengths, FixedDraftLength
from workers.rollout.engine import Completion, RolloutResult, SamplingParams, SpeculationCounters
from workers.rollout.vllm.buckets import in_buckets
from workers.rollout.vllm.draft_lengths import measured_controller
from workers.rollout.vllm.library import scheduler_of, shut_down
from workers.rollout.vllm.records import draft_evidence, round_records
from workers.rollout.vllm.round_tap import RoundTap
from workers.rollout.vllm.sampling import check_request, completion, vllm_params
from workers.rollout.vllm.verification_log import Verified


class EngineShape(NamedTuple):
    """What an engine was built for."""

    eos_token_ids: frozenset[int]
    vocabulary_size: int
    max_sequence_tokens: int
    """Prompt and response together."""
    max_batch_size: int
    draft_length: int = 0
    """0 without a drafter."""
    is_controlled: bool = False
    """Whether measured costs and acceptance choose draft lengths."""
    is_lookup: bool = False
    has_draft_weights: bool = False
    bucket_bytes: int = 256 * 2**20


class VllmRolloutEngine:
    """See workers.rollout.engine.RolloutEngine. Made by build.build_vllm_engine()."""

    def __init__(self, llm: Any, shape: EngineShape) -> None:
        """llm: a vllm.LLM of this process whose workers have the extension."""
        self._llm, self.shape = llm, shape
        self._tap = RoundTap(scheduler_of(llm), is_lookup=shape.is_lookup)
        self._draft_lengths: DraftLengths | None = None
        self._num_calls = 0
        self._call("rollout_attach")

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        num_samples: int,
        params: SamplingParams,
        *,
        speculate: bool = True,
        record_rounds_of: Sequence[int] = (),
        evidence_of: Sequence[int] = (),
        remember: bool = True,
    ) -> RolloutResult:
        """See RolloutEngine.generate. Without a drafter every call is autoregressive."""
        self._check(prompts, num_samples, params, [*record_rounds_of, *evidence_of])
        is_speculating = speculate and self.shape.draft_length > 0
        lengths = self._lengths(prompts, params) if is_speculating else FixedDraftLength(0)
        started = time.perf_counter()
        self.begin(params.seed, lengths, is_speculating, record_rounds_of, evidence_of)
        completions = self._run([list(prompt) for prompt in prompts for _ in range(num_samples)], num_samples, params)
        verified = self.finish(remember)
        seconds = time.perf_counter() - started
        result = RolloutResult(completions, SpeculationCounters(), seconds, load=self._tap.load)
        if is_speculating:
            self._tell(result, verified, record_rounds_of, evidence_of)
        for index in record_rounds_of if not is_speculating else ():
            completions[index].rounds = round_records(completions[index].token_ids, (), ())
        return result

    def update_weights(self, part: Literal["policy", "draft"], weights: Iterable[tuple[str, Tensor]]) -> None:
        """Take up a part's weights, by their Hugging Face names, as they come.

        No more is held than a bucket and what belongs to layers that are not complete; until the call ends no tensor
        may change that was handed in.
        All of them must come. Raises ValueError naming the first layer that lacks some.
        """
        if part == "draft" and not self.shape.has_draft_weights:
            raise ValueError("this engine's drafter has no weights: give it another one when it is made")
        self._call("weights_begin", part)
        try:
            for bucket in in_buckets(weights, self.shape.bucket_bytes):
                self._call("weights_load", part, bucket)
        finally:
            missing = sorted({name for names in self._call("weights_finish", part) for name in names})
        if missing:
            raise ValueError(f"the {part}'s weights lack those of {len(missing)} layers, the first is {missing[0]}")
        self._llm.reset_prefix_cache()

    def close(self) -> None:
        """Give memory and worker processes back."""
        shut_down(self._llm)
        del self._llm, self._tap

    def _check(
        self, prompts: Sequence[Sequence[int]], num_samples: int, params: SamplingParams, chosen: list[int]
    ) -> None:
        check_request(
            prompts,
            num_samples,
            params,
            chosen,
            max_sequence_tokens=self.shape.max_sequence_tokens,
            vocabulary_size=self.shape.vocabulary_size,
            is_speculating=self.shape.draft_length > 0,
        )

    def _lengths(self, prompts: Sequence[Sequence[int]], params: SamplingParams) -> DraftLengths:
        """What decides draft lengths; costs are measured on the first call's prompts."""
        if not self.shape.is_controlled:
            return FixedDraftLength(self.shape.draft_length)
        if self._draft_lengths is None:
            self._draft_lengths = measured_controller(self, prompts, params)
        return self._draft_lengths

    def begin(
        self,
        seed: int,
        lengths: DraftLengths,
        is_speculating: bool,
        recorded: Collection[int],
        evident: Collection[int],
    ) -> None:
        """A call begins. Nothing of earlier ones is left in the cache: equal calls take equal steps, and a draft's
        cache that was not filled in a call without speculation is not read."""
        self._llm.reset_prefix_cache()
        self._num_calls += 1
        self._tap.begin(lengths)
        self._call(
            "rollout_start", seed, is_speculating, *({self._name(i) for i in some} for some in (recorded, evident))
        )

    def finish(self, remember: bool) -> dict[str, list[Verified]]:
        """What was recorded, by request."""
        return self._call("rollout_finish", remember)[0]

    def _run(self, prompts: Sequence[list[int]], num_samples: int, params: SamplingParams) -> list[Completion]:
        """One request a response; vLLM fills its batch in their order."""
        self.add(prompts, vllm_params(params, self.shape.eos_token_ids))
        finished: dict[int, Completion] = {}
        try:
            while len(finished) < len(prompts):
                for output in self.step():
                    index = int(output.request_id.split(".")[1])
                    finished[index] = completion(output.outputs[0], index // num_samples, params.temperature)
        finally:
            if len(finished) < len(prompts):
                self.abort(len(prompts))
        return [finished[index] for index in range(len(prompts))]

    def add(self, prompts: Sequence[list[int]], vllm_sampling_params: Any) -> None:
        """Put requests into the queue."""
        for index, prompt in enumerate(prompts):
            request = {"prompt_token_ids": prompt}
            self._llm.llm_engine.add_request(self._name(index), request, vllm_sampling_params)

    def step(self) -> list[Any]:
        """One step of the engine, timed; what finished in it."""
        began = time.perf_counter()
        outputs = self._llm.llm_engine.step()
        self._tap.end_step(time.perf_counter() - began)
        return [output for output in outputs if output.finished]

    def pad_drafts(self, length: int | None) -> None:
        """Where drafts are looked up: put so many tokens in the place of each, until told None."""
        self._tap.padding_length = length if self.shape.is_lookup else None

    def abort(self, num_requests: int) -> None:
        """Take what is left of the requests out of the engine."""
        self._llm.llm_engine.abort_request([self._name(index) for index in range(num_requests)])

    def _name(self, index: int) -> str:
        """Of a request of this call."""
        return f"{self._num_calls}.{index}"

    def _tell(
        self,
        result: RolloutResult,
        verified: dict[str, list[Verified]],
        recorded: Collection[int],
        evident: Collection[int],
    ) -> None:
        """What the rounds did."""
        rounds = self._tap.rounds
        result.counters = self._tap.statistics.counters()
        result.round_costs = self._tap.statistics.costs()
        for index in recorded:
            name = self._name(index)
            tokens = result.completions[index].token_ids
            result.completions[index].rounds = round_records(tokens, rounds.get(name, ()), verified.get(name, ()))
        by_index = [{i: found.get(self._name(i), []) for i in evident} for found in (rounds, verified)]
        result.evidence = draft_evidence(list(evident), *by_index)

    def _call(self, method: str, *arguments: Any) -> list[Any]:
        """A method of the extension, on every worker."""
        return self._llm.collective_rpc(method, args=arguments)
