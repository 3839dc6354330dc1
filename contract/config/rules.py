"""The rules that need more than one field of a configuration, and the ones that a broken field leaves to be judged."""

from collections.abc import Collection, Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from difflib import get_close_matches
from functools import reduce
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from contract.config.dataset import PROMPT_PLACE
from contract.config.drafter import SuffixDrafter
from contract.config.policy import SCRATCH_POSITIONS
from contract.config.resource_rules import RESOURCE_RULES
from contract.config.rule import Rule
from contract.config.task import ArithmeticTask

if TYPE_CHECKING:
    from contract.config.run import RunConfig

Location = tuple[str | int, ...]


_SUFFIX_MIN_MATCH = SuffixDrafter().min_match_tokens
_TRAINED_DRAFTERS = ("eagle3", "mtp", "draft_model")

RULES: tuple[Rule, ...] = (
    Rule(
        "policy.hidden_size",
        ("policy.num_attention_heads",),
        lambda size, heads: size % (2 * heads) == 0,
        lambda heads: f"must be a multiple of {2 * heads} (twice num_attention_heads), so that heads are of even width",
    ),
    Rule(
        "policy.num_key_value_heads",
        ("policy.num_attention_heads",),
        lambda key_value_heads, heads: heads % key_value_heads == 0,
        lambda heads: f"must divide num_attention_heads = {heads}",
    ),
    Rule(
        "policy.num_layers",
        ("drafter.kind",),
        lambda layers, drafter: drafter != "eagle3" or layers >= 3,
        lambda _: (
            "must be at least 3 with drafter eagle3, which reads a low, a middle and a high layer; "
            "or choose drafter none"
        ),
    ),
    Rule(
        "drafter.kind",
        ("job",),
        lambda drafter, job: job != "draft_training" or drafter in _TRAINED_DRAFTERS,
        lambda _: (
            f"must be one of {', '.join(_TRAINED_DRAFTERS)} with job draft_training: other drafters have no weights"
        ),
    ),
    Rule(
        "drafter.path",
        ("job",),
        lambda _, job: job != "draft_training",
        lambda _: "must be left out with job draft_training, which makes the draft's folder",
    ),
    Rule(
        "drafter.max_match_tokens",
        ("drafter.min_match_tokens",),
        lambda longest, shortest: longest >= shortest,
        lambda shortest: f"must be at least min_match_tokens = {shortest}",
    ),
    Rule(
        "drafter.shape.hidden_size",
        ("drafter.shape.num_attention_heads", "drafter.kind"),
        lambda size, heads, kind: kind != "draft_model" or size % (2 * heads) == 0,
        lambda heads, _: (
            f"must be a multiple of {2 * heads} (twice num_attention_heads), so that heads are of even width"
        ),
    ),
    Rule(
        "drafter.shape.num_key_value_heads",
        ("drafter.shape.num_attention_heads",),
        lambda key_value_heads, heads: heads % key_value_heads == 0,
        lambda heads: f"must divide num_attention_heads = {heads}",
    ),
    Rule(
        "rollout.temperature",
        (),
        lambda temperature: temperature > 0,
        lambda: "must be above 0: greedy responses of a group are all equal, so advantages are all zero",
    ),
    Rule(
        "rollout.min_p",
        ("rollout.kind", "drafter.kind", "rollout.top_p"),
        lambda min_p, engine, drafter, top_p: not min_p or engine != "vllm" or (drafter == "none" and top_p == 1),
        lambda *_: (
            "must be 0 with rollout vllm, unless drafter is none and top_p is 1: vLLM leaves min_p out where it "
            "verifies drafts, and cuts by it before top_p instead of after"
        ),
    ),
    *(
        Rule(
            f"{part}.temperature",
            ("rollout.kind",),
            lambda temperature, engine: engine != "vllm" or not 0 < temperature < 0.01,
            lambda _: "must be at least 0.01 with rollout vllm, which would draw at 0.01 instead",
        )
        for part in ("rollout", "validation")
    ),
    Rule(
        "rollout.max_sequence_tokens",
        ("rollout.max_new_tokens",),
        lambda tokens, new: tokens > new,
        lambda new: f"must be more than max_new_tokens = {new:,}, for the prompt is part of the sequence",
    ),
    Rule(
        "drafter.min_match_tokens",
        ("drafter.kind", "rollout.kind"),
        lambda tokens, drafter, engine: (drafter, engine) != ("suffix", "vllm") or tokens == _SUFFIX_MIN_MATCH,
        lambda *_: f"must be left at {_SUFFIX_MIN_MATCH} with rollout vllm, whose suffix decoding has no such limit",
    ),
    Rule(
        "rollout.max_new_tokens",
        ("policy.kind", "task.num_terms", "task.max_term"),
        lambda tokens, policy, *task: policy != "scratch" or tokens >= _longest_response(*task),
        lambda _, *task: (
            f"must be at least {_longest_response(*task):,}, for the task's longest worked solution and the "
            "end-of-sequence token, one token a character: no reward is given for a response that is cut"
        ),
    ),
    Rule(
        "rollout.max_new_tokens",
        ("policy.kind", "task.num_terms", "task.max_term"),
        lambda tokens, policy, *task: policy != "scratch" or tokens <= _room(*task),
        lambda _, *task: (
            f"must be at most {_room(*task):,}: a policy from scratch has {SCRATCH_POSITIONS:,} positions, the "
            "prompt's among them"
        ),
    ),
    Rule(
        "policy.kind",
        ("task.kind",),
        lambda policy, task: policy != "scratch" or task == "arithmetic",
        lambda task: (
            f"must be checkpoint with task {task}: a policy from scratch knows the characters of arithmetic only, and "
            "learns from its worked solutions"
        ),
    ),
    Rule(
        "drafter.pretraining.prompts",
        ("task.kind",),
        lambda prompts, task: prompts == "task" or task == "arithmetic",
        lambda task: f"must be task with task {task}: generic prompts are sums of other sizes",
    ),
    Rule(
        "task.train.prompt_template",
        (),
        lambda template: PROMPT_PLACE in template,
        lambda: f"must contain {PROMPT_PLACE}, where the row's prompt goes",
    ),
    Rule(
        "task.validation.prompt_template",
        (),
        lambda template: PROMPT_PLACE in template,
        lambda: f"must contain {PROMPT_PLACE}, where the row's prompt goes",
    ),
    Rule(
        "task.thinking",
        ("task.chat_template",),
        lambda thinking, template: thinking == "default" or template == "policy",
        lambda _: "must be default with chat_template plain, which has nothing to switch on or off",
    ),
    Rule(
        "task.overlong.buffer_tokens",
        ("rollout.max_new_tokens",),
        lambda buffer, longest: buffer < longest,
        lambda longest: f"must be less than rollout.max_new_tokens = {longest:,}",
    ),
    Rule(
        "samples.num_samples",
        ("grpo.num_prompts_per_step", "grpo.num_generations_per_prompt"),
        lambda samples, prompts, generations: samples <= prompts * generations,
        lambda prompts, generations: f"must be at most the number of responses of a step, {prompts * generations}",
    ),
    Rule(
        "grpo.num_updates_per_step",
        ("grpo.num_prompts_per_step",),
        lambda updates, prompts: updates <= prompts,
        lambda prompts: (
            f"must be at most grpo.num_prompts_per_step = {prompts}, so that each update has responses of its own"
        ),
    ),
    Rule(
        "trainer.num_processes",
        ("trainer.tensor_parallel_size", "trainer.pipeline_parallel_size"),
        lambda processes, tensor, pipeline: processes % (tensor * pipeline) == 0,
        lambda tensor, pipeline: (
            f"must be a multiple of tensor_parallel_size * pipeline_parallel_size = {tensor * pipeline}"
        ),
    ),
    Rule(
        "trainer.expert_parallel_size",
        ("trainer.num_processes", "trainer.pipeline_parallel_size"),
        lambda experts, processes, pipeline: (processes // pipeline) % experts == 0,
        lambda processes, pipeline: (
            "must divide the ranks of a pipeline stage, "
            f"num_processes / pipeline_parallel_size = {processes // pipeline}"
        ),
    ),
    Rule(
        "trainer.expert_parallel_size",
        ("policy.kind",),
        lambda experts, policy: experts == 1 or policy != "scratch",
        lambda _: "must be 1 with a policy from scratch, which has no experts",
    ),
    Rule(
        "trainer.tensor_parallel_size",
        ("policy.num_attention_heads", "policy.num_key_value_heads", "policy.intermediate_size"),
        lambda ranks, *sizes: all(size % ranks == 0 for size in sizes),
        lambda heads, key_value_heads, width: (
            f"must divide num_attention_heads = {heads}, num_key_value_heads = {key_value_heads} and "
            f"intermediate_size = {width} of the policy"
        ),
    ),
    Rule(
        "trainer.pipeline_parallel_size",
        ("policy.num_layers",),
        lambda stages, layers: layers % stages == 0,
        lambda layers: f"must divide the policy's num_layers = {layers}, so that every stage has as many",
    ),
    Rule(
        "trainer.distributed_optimizer",
        ("trainer.kind", "trainer.optimizer.kind"),
        lambda is_cut, trainer, optimizer: not (is_cut and trainer == "megatron" and optimizer == "muon"),
        lambda *_: "must be false with optimizer muon, whose state Megatron-core does not cut",
    ),
    Rule(
        "resources.gpu_memory_gib",
        ("resources.gpus_per_node",),
        lambda _, gpus: gpus > 0,
        lambda _: "must be left out where gpus_per_node is 0: the run takes no GPU",
    ),
    *RESOURCE_RULES,
    Rule(
        "rollout.num_engines",
        ("grpo.num_prompts_per_step",),
        lambda engines, prompts: engines <= prompts,
        lambda prompts: f"must be at most grpo.num_prompts_per_step = {prompts}, one prompt for each engine",
    ),
)


def _longest_response(num_terms: int, max_term: int) -> int:
    return ArithmeticTask(num_terms=num_terms, max_term=max_term).longest_solution() + 1


def _room(num_terms: int, max_term: int) -> int:
    return SCRATCH_POSITIONS - ArithmeticTask(num_terms=num_terms, max_term=max_term).longest_prompt()


@dataclass(frozen=True, slots=True)
class BrokenRule:
    """A rule that does not hold."""

    location: tuple[str, ...]
    value: object
    mend: str


def broken_rules(config: "RunConfig", doubtful: Collection[Location] = ()) -> Iterator[BrokenRule]:
    """Every rule that does not hold, less those about fields at or below the doubtful locations."""
    for rule in RULES:
        paths = _paths(rule)
        if any(path[: len(location)] == location for path in paths for location in doubtful):
            continue
        values = [_value(config, path) for path in paths]
        if None not in values and not rule.holds(*values):
            yield BrokenRule(paths[0], values[0], rule.mend(*values[1:]))
    if not doubtful:
        yield from _uneven(config)
        yield from _too_large(config)


def _uneven(config: "RunConfig") -> Iterator[BrokenRule]:
    """Parallel sizes that do not divide a named model's; those of a model from scratch are rules of fields."""
    from contract.config.policy import CheckpointPolicy  # noqa: PLC0415
    from contract.sizing.architecture import architecture_of  # noqa: PLC0415  it reads parts of a configuration

    shape = architecture_of(config.policy)
    if shape is None or not isinstance(config.policy, CheckpointPolicy):
        return
    heads = {"query heads": shape.num_attention_heads, "key and value heads": shape.num_key_value_heads}
    for part, field, sizes in (
        ("trainer", "tensor_parallel_size", heads),
        ("trainer", "pipeline_parallel_size", {"layers": shape.num_layers}),
        ("trainer", "expert_parallel_size", {"experts": shape.num_experts or 1}),
        ("rollout", "tensor_parallel_size", {"query heads": shape.num_attention_heads}),
    ):
        value = _value(config, (part, field))
        for what, size in sizes.items():
            if value is not None and size % value:
                model = config.policy.model
                mend = f"must divide the {size} {what} of {model}" if size > 1 else f"must be 1: {model} has no {what}"
                yield BrokenRule((part, field), value, mend)


def _too_large(config: "RunConfig") -> Iterator[BrokenRule]:
    from contract.sizing.memory import estimate_memory, too_large  # noqa: PLC0415  it reads parts of a configuration

    if config.resources.gpu_memory_gib is None:
        return
    estimate = estimate_memory(config)
    if mend := estimate and too_large(estimate):
        yield BrokenRule(("resources", "gpu_memory_gib"), config.resources.gpu_memory_gib, mend)


def _value(config: object, path: Iterable[str]) -> Any:
    return reduce(lambda here, name: getattr(here, name, None), path, config)


def without(data: dict[Any, Any], locations: Iterable[Location]) -> tuple[dict[Any, Any], set[Location]]:
    """(the data less what stands at the locations, the paths of what was taken out).

    A location may hold tags of unions, as pydantic puts them in. Where nothing stands, something is missing, and its
    part is taken out.
    """
    paths = {_path(data, location) for location in locations} - {()}
    rest = deepcopy(data)
    for path in sorted(paths, key=len, reverse=True):
        part = reduce(lambda here, name: here[name], path[:-1], rest)
        del part[path[-1]]
    return rest, paths


def left_out_beside(data: dict[str, Any], unknown: Location) -> set[Location]:
    """The fields of rules that an unknown key may have been meant for."""
    *parent, _ = _path(data, unknown)
    beside = {path[: len(parent) + 1] for rule in RULES for path in _paths(rule) if [*path[: len(parent)]] == parent}
    return {path for path in beside if _path(data, path) != path}


def meant_key(data: dict[str, Any], unknown: Location, valid: "RunConfig | None") -> str | None:
    """The key that an unknown one resembles, if any, in the part of a valid configuration that is at its place."""
    *parent, name = _path(data, unknown)
    part = _value(valid, map(str, parent))
    known = list(type(part).model_fields) if isinstance(part, BaseModel) else []
    return None if name in known else next(iter(get_close_matches(str(name), known, 1)), None)


def _paths(rule: Rule) -> list[tuple[str, ...]]:
    return [tuple(name.split(".")) for name in (rule.field, *rule.others)]


def _path(data: Any, location: Location) -> Location:
    """The longest part of the location that leads to a value inside dictionaries, without tags of unions."""
    path: list[str | int] = []
    for name in location:
        if isinstance(data, dict) and name not in data and data.get("kind") == name:
            continue
        if not isinstance(data, dict) or name not in data:
            break
        path.append(name)
        data = data[name]
    return tuple(path)
