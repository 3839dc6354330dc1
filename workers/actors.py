"""The Ray actors of a run, and their stand-ins that the loop talks to.

An actor wraps an engine or a trainer in a process of its own. The stand-ins implement the same protocols, so that the
loop does not know whether what it asks is next door.
"""

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import ray
import torch
from torch import Tensor

from contract.config import RunConfig
from contract.config.drafter import NgramDrafter, OnlineDraftTraining, SuffixDrafter, TrainedDrafter
from contract.config.policy import ScratchPolicy
from contract.config.resources import ResourcesConfig
from workers.data.tokenizer import load_tokenizer
from workers.model.draft_checkpoint import load_draft
from workers.model.hf_checkpoint import load_policy
from workers.ray_calls import RayCalls
from workers.rollout.drafters.looked_up import looked_up_drafting
from workers.rollout.drafters.trained import trained_drafting
from workers.rollout.engine import Completion, DraftEvidence, RolloutResult, SamplingParams, SpeculationCounters
from workers.rollout.torch_engine import TorchRolloutEngine
from workers.seeds import derive_seed
from workers.train.draft_pretraining import Rollouts, pretrain_draft
from workers.train.progress import SetUpProgress
from workers.train.torch_trainer import TorchPolicyTrainer
from workers.train.trainer import LogprobResult, TrainingBatch
from workers.train.warm_up import warm_up

_MAX_ACTOR_CPUS = 0.5
"""Engines and trainer take turns, so that together they claim less than they have threads."""

_TRAINER_ENVIRONMENT = {"OMP_WAIT_POLICY": "passive"}
"""Threads that wait by spinning take the CPU from the very thread they wait for once the machine is shared: with one
other busy process on two cores a step of two threads took twelve times as long."""


@ray.remote
class RolloutActor:
    """One engine."""

    def __init__(self) -> None:
        torch.set_num_threads(1)
        self._engine: TorchRolloutEngine | None = None

    def ready(self) -> None:
        """Answers once the process runs."""

    def build(self, config_json: str, policy_folder: str, draft_folder: str | None) -> None:
        """Make the engine for the policy and the draft of two folders, and put the weights in place."""
        config, folder = RunConfig.model_validate_json(config_json), Path(policy_folder)
        policy = load_policy(folder)
        draft = load_draft(Path(draft_folder), policy.config, config.drafter.kind) if draft_folder else None
        drafting = None
        if isinstance(config.drafter, TrainedDrafter) and draft is not None:
            drafting = trained_drafting(config.drafter, draft)
        elif isinstance(config.drafter, NgramDrafter | SuffixDrafter):
            drafting = looked_up_drafting(config.drafter)
        self._engine = TorchRolloutEngine(
            policy.config,
            sorted({load_tokenizer(folder).eos_id, *policy.config.eos_token_ids}),
            config.rollout.max_batch_size,
            config.rollout.precision,
            drafting,
        )
        self._engine.update_policy(policy.state_dict())
        if draft is not None:
            self._engine.update_draft(draft.export(policy))

    def call(self, method: str, *arguments: Any, **named: Any) -> Any:
        """A method of the engine."""
        return getattr(self._engine, method)(*arguments, **named)


@ray.remote
class TrainerActor:
    """The trainer, and the set-up stages that train."""

    def __init__(self, config_json: str) -> None:
        self._config = RunConfig.model_validate_json(config_json)
        torch.set_num_threads(self._config.trainer.num_threads)
        self._trainer: TorchPolicyTrainer | None = None

    def ready(self) -> None:
        """Answers once the process runs."""

    def warm_up(self, folder: str) -> Iterator[SetUpProgress]:
        """Train the starting policy from scratch into a folder."""
        config = self._config
        assert isinstance(config.policy, ScratchPolicy)
        yield from warm_up(Path(folder), config.policy, config.task, config.trainer, config.seed)

    def pretrain_draft(self, folder: str, policy_folder: str, rollouts: Rollouts) -> Iterator[SetUpProgress]:
        """Train the starting draft into a folder."""
        config = self._config
        assert isinstance(config.drafter, TrainedDrafter)
        policy = load_policy(Path(policy_folder))
        yield from pretrain_draft(
            Path(folder), policy, rollouts, config.drafter, trainer=config.trainer, seed=config.seed
        )

    def build(self, policy_folder: str, draft_folder: str | None) -> None:
        """Make the trainer for a policy and a draft."""
        config, drafter = self._config, self._config.drafter
        policy = load_policy(Path(policy_folder))
        self._trainer = TorchPolicyTrainer(
            policy,
            load_policy(Path(policy_folder)) if config.grpo.kl_penalty else None,
            load_draft(Path(draft_folder), policy.config, drafter.kind) if draft_folder else None,
            trainer=config.trainer,
            grpo=config.grpo,
            online=drafter.online
            if isinstance(drafter, TrainedDrafter)
            else OnlineDraftTraining(num_updates_per_step=0),
            seed=derive_seed(config.seed, "trainer"),
        )

    def call(self, method: str, *arguments: Any) -> Any:
        """A method of the trainer."""
        return getattr(self._trainer, method)(*arguments)


class RemoteTrainer:
    """A PolicyTrainer in another process."""

    def __init__(self, actor: Any, calls: RayCalls) -> None:
        self.actor = actor
        self._calls = calls

    def compute_logprobs(self, batch: TrainingBatch) -> LogprobResult:
        return self._call("compute_logprobs", batch)

    def train_step(self, batch: TrainingBatch, logprobs: LogprobResult, advantages_B: Tensor) -> dict[str, float]:
        return self._call("train_step", batch, logprobs, advantages_B)

    def train_draft(self, batch: TrainingBatch) -> dict[str, float]:
        return self._call("train_draft", batch)

    def save(self, path: Path) -> None:
        self._call("save", path)

    def load(self, path: Path) -> None:
        self._call("load", path)

    def _call(self, method: str, *arguments: Any) -> Any:
        return self._calls.get("The trainer", self.actor.call.remote(method, *arguments))


class RemoteEngines:
    """Engines in other processes as one RolloutEngine: prompts are shared out, results put together in order."""

    def __init__(self, actors: Sequence[Any], calls: RayCalls) -> None:
        self.actors = list(actors)
        self._calls = calls

    def build(self, config: RunConfig, policy: Path, draft: Path | None) -> None:
        """Make every engine anew, with the weights of these folders."""
        folders = (str(policy), str(draft) if draft else None)
        builds = [actor.build.remote(config.model_dump_json(), *folders) for actor in self.actors]
        self._calls.get_all("Rollout engine", builds)

    def call_all(self, method: str, *arguments: Any) -> None:
        """The same call to every engine; returns when all have answered."""
        self._calls.get_all("Rollout engine", [actor.call.remote(method, *arguments) for actor in self.actors])

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
        """Every engine draws with a seed of its own, so that engines of equal prompts do not draw equal responses."""
        shares = share_out(len(prompts), len(self.actors))
        references = [
            actor.call.remote(
                "generate",
                [prompts[i] for i in share],
                num_samples,
                replace(params, seed=derive_seed(params.seed, "engine", index)),
                speculate=speculate,
                record_rounds_of=_local_rows(record_rounds_of, share, num_samples),
                evidence_of=_local_rows(evidence_of, share, num_samples),
                remember=remember,
            )
            for index, (actor, share) in enumerate(zip(self.actors, shares, strict=True))
            if share
        ]
        return merge_results(shares, self._calls.get_all("Rollout engine", references))


class ObjectStoreSync:
    """Weights go from the trainer to all engines through Ray's object store, never through the driver."""

    def __init__(self, trainer: RemoteTrainer, engines: RemoteEngines, *, has_draft: bool) -> None:
        self._trainer = trainer
        self._engines = engines
        self._has_draft = has_draft

    def sync(self) -> None:
        export = self._trainer.actor.call
        policy = export.remote("export_policy")
        draft = export.remote("export_draft") if self._has_draft else None
        self._engines.call_all("update_policy", policy)
        if draft is not None:
            self._engines.call_all("update_draft", draft)


def share_out(num_prompts: int, num_engines: int) -> list[range]:
    """Consecutive prompts for each engine, in nearly equal numbers; empty ranges where there are fewer prompts."""
    cuts = [num_prompts * i // num_engines for i in range(num_engines + 1)]
    return [range(cuts[i], cuts[i + 1]) for i in range(num_engines)]


def merge_results(shares: Sequence[range], results: Sequence[RolloutResult]) -> RolloutResult:
    """Completions in the order of all prompts, with the evidence about them, counters added, and the time of the
    slowest engine."""
    completions: list[Completion] = []
    evidence: list[DraftEvidence] = []
    for share, result in zip([share for share in shares if share], results, strict=True):
        if result.evidence is not None:
            moved = result.evidence.completion_M + len(completions)
            evidence.append(replace(result.evidence, completion_M=moved))
        for completion in result.completions:
            completion.prompt_index += share.start
            completions.append(completion)
    counters = sum((result.counters for result in results), SpeculationCounters())
    return RolloutResult(
        completions,
        counters,
        max(result.generation_s for result in results),
        [cost for result in results for cost in result.round_costs],
        _joined(evidence),
    )


def _joined(parts: Sequence[DraftEvidence]) -> DraftEvidence | None:
    """One after another, None where there is none; what one keeps fewer of is filled up as DraftEvidence says."""
    if not parts:
        return None
    width = max(part.top_ids_MN.shape[1] for part in parts)
    even = [
        replace(part, top_ids_MN=_widen(part.top_ids_MN, width, -1), top_probs_MN=_widen(part.top_probs_MN, width, 0))
        for part in parts
    ]
    return DraftEvidence(*(torch.cat([getattr(part, field.name) for part in even]) for field in fields(DraftEvidence)))


def _widen(tensor_MN: Tensor, width: int, value: int) -> Tensor:
    return torch.nn.functional.pad(tensor_MN, (0, width - tensor_MN.shape[1]), value=value)


def actor_cpus(num_actors: int) -> float:
    """CPUs that each actor claims, such that all of them fit the cluster."""
    total = float(ray.cluster_resources().get("CPU", 1.0))
    return min(_MAX_ACTOR_CPUS, total / num_actors)


def engine_gpus(resources: ResourcesConfig, num_engines: int) -> float:
    """GPUs that each engine claims of those that the run takes: a whole one, or as many share one as have to. An engine
    that claims none sees none and runs on a processor."""
    num_gpus = resources.num_nodes * resources.gpus_per_node
    return 1 / -(-num_engines // num_gpus) if num_gpus else 0.0


def start_trainer(config: RunConfig, run_name: str) -> Any:
    """Start the trainer's process."""
    cpus = actor_cpus(1 + config.rollout.num_engines)
    named = TrainerActor.options(  # type: ignore[attr-defined]
        name=f"{run_name}/trainer", num_cpus=cpus, runtime_env={"env_vars": _TRAINER_ENVIRONMENT}
    )
    return named.remote(config.model_dump_json())


def start_engines(config: RunConfig, run_name: str) -> list[Any]:
    """Start the engines' processes."""
    claims = {
        "num_cpus": actor_cpus(1 + config.rollout.num_engines),
        "num_gpus": engine_gpus(config.resources, config.rollout.num_engines),
    }
    return [
        RolloutActor.options(name=f"{run_name}/engine-{index}", **claims).remote()  # type: ignore[attr-defined]
        for index in range(config.rollout.num_engines)
    ]


def _local_rows(rows: Sequence[int], share: range, num_samples: int) -> list[int]:
    """Rows of the whole result as rows of one engine's part."""
    first = share.start * num_samples
    return [row - first for row in rows if first <= row < share.stop * num_samples]
