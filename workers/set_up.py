"""From a configuration to everything that the loop needs: actors, starting policy, starting draft head."""

import logging
import time
from collections.abc import Iterable
from pathlib import Path

from contract.config import RunConfig
from contract.config.drafter import Eagle3Drafter
from contract.config.policy import CheckpointPolicy
from contract.telemetry.stages import Stage
from workers.actors import ObjectStoreSync, RemoteEngines, RemoteTrainer, share_out, start_engines, start_trainer
from workers.data.arithmetic import ArithmeticProblems
from workers.data.batch import to_training_batch
from workers.data.tokenizer import Tokenizer, load_tokenizer
from workers.loop import Parts
from workers.ray_calls import RayCalls
from workers.rollout.engine import Completion, SamplingParams
from workers.seeds import derive_seed
from workers.stopping import StopWatch
from workers.telemetry.reporter import Reporter
from workers.train.checkpoint import CheckpointStore, RunProgress
from workers.train.draft_pretraining import draft_pretraining_folder
from workers.train.progress import SetUpProgress
from workers.train.trainer import TrainingBatch
from workers.train.warm_up import warm_up_folder

log = logging.getLogger(__name__)

_PATIENCE_S = 30.0
_ROLLOUT_CHUNKS = 6
"""generate() calls that the draft head's training data is cut into, so that progress is seen."""
_ROLLOUT_SHARE = 0.4
"""Share of the draft pretraining's time that its rollouts take, for the progress bar."""


class SetUp:
    """Starts the actors and brings them to the point from which the loop goes on."""

    def __init__(
        self,
        config: RunConfig,
        cache_dir: Path,
        store: CheckpointStore,
        *,
        reporter: Reporter,
        stop: StopWatch,
        run: str,
    ) -> None:
        self._config, self._cache_dir, self._store = config, cache_dir, store
        self._reporter, self._stop = reporter, stop
        self._calls = RayCalls(stop.interrupt)
        self._trainer = RemoteTrainer(start_trainer(config, run), self._calls)
        self._engines = RemoteEngines(start_engines(config, run), self._calls)

    def run(self) -> tuple[Parts, RunProgress]:
        """Warm up and pretrain where no cached result and no checkpoint makes it unnecessary."""
        self._wait_for_processes()
        found = self._store.newest()
        if found is not None:
            folder, progress = found
            log.info("Resuming after step %d from %s.", progress.step, folder)
            policy, draft = folder / "policy", folder / "draft"
        else:
            progress = RunProgress()
            policy = self._starting_policy()
            draft = self._starting_draft(policy)
        return self._build(policy, draft if self._has_draft else None, found[0] if found else None), progress

    def _wait_for_processes(self) -> None:
        """Until the cluster has room for every actor; says so where that takes long, and ends where it need not be."""
        begun, said = time.monotonic(), False

        def interrupt() -> None:
            nonlocal said
            self._stop.check()
            if not said and time.monotonic() - begun > _PATIENCE_S:
                said = True
                log.warning("Still waiting for the cluster to start the run's processes; other runs may hold its CPUs.")

        calls = RayCalls(interrupt)
        calls.get("The trainer", self._trainer.actor.ready.remote())
        calls.get_all("Rollout engine", [actor.ready.remote() for actor in self._engines.actors])

    @property
    def _has_draft(self) -> bool:
        return isinstance(self._config.drafter, Eagle3Drafter)

    def _build(self, policy: Path, draft: Path | None, checkpoint: Path | None) -> Parts:
        """The loop's parts with their weights, and the trainer's state where there is a checkpoint."""
        build = self._trainer.actor.build.remote(str(policy), str(draft) if draft else None)
        self._build_engines(policy, draft)
        self._calls.get("The trainer", build)
        if checkpoint is not None:
            self._trainer.load(checkpoint)
        return Parts(
            engine=self._engines,
            trainer=self._trainer,
            sync=ObjectStoreSync(self._trainer, self._engines, has_draft=self._has_draft),
            tokenizer=load_tokenizer(policy),
            reporter=self._reporter,
            checkpoints=self._store,
            check_stop=self._stop.check,
        )

    def _build_engines(self, policy: Path, draft: Path | None) -> None:
        config_json = self._config.model_dump_json()
        folders = (str(policy), str(draft) if draft else None)
        builds = [actor.build.remote(config_json, *folders) for actor in self._engines.actors]
        self._calls.get_all("Rollout engine", builds)

    def _starting_policy(self) -> Path:
        config = self._config
        if isinstance(config.policy, CheckpointPolicy):
            return Path(config.policy.path)
        folder = warm_up_folder(self._cache_dir, config.policy, config.task, config.trainer, config.seed)
        if folder.is_dir():
            log.info("The starting policy comes from %s.", folder)
        else:
            log.info("Warming up the starting policy in %d steps. It will be kept.", config.policy.warm_up.num_steps)
            stream = self._trainer.actor.warm_up.options(num_returns="streaming").remote(str(folder))
            self._follow(Stage.WARM_UP, self._calls.stream("The trainer", stream), 0.0)
        return folder

    def _starting_draft(self, policy: Path) -> Path:
        config = self._config
        if not isinstance(config.drafter, Eagle3Drafter):
            return policy
        if config.drafter.path is not None:
            return Path(config.drafter.path)
        folder = draft_pretraining_folder(
            self._cache_dir,
            _identity(policy),
            config.task,
            config.drafter,
            rollout=config.rollout,
            trainer=config.trainer,
            seed=config.seed,
        )
        if folder.is_dir():
            log.info("The starting draft head comes from %s.", folder)
        else:
            count = config.drafter.pretraining.num_rollouts
            log.info("Training the starting draft head on %d responses of the policy. It will be kept.", count)
            rollouts = self._draft_rollouts(policy, count)
            call = self._trainer.actor.pretrain_draft.options(num_returns="streaming")
            stream = call.remote(str(folder), str(policy), rollouts)
            self._follow(Stage.DRAFT_PRETRAINING, self._calls.stream("The trainer", stream), _ROLLOUT_SHARE)
        return folder

    def _draft_rollouts(self, policy: Path, count: int) -> TrainingBatch:
        """One response for each of count prompts, drawn by the starting policy without speculation."""
        self._enter(Stage.DRAFT_PRETRAINING, 0.0)
        self._build_engines(policy, None)
        tokenizer, rollout = load_tokenizer(policy), self._config.rollout
        prompts = _prompts(
            ArithmeticProblems(self._config.task, self._config.seed, "draft_pretraining"), tokenizer, count
        )
        completions: list[Completion] = []
        for chunk in share_out(count, min(_ROLLOUT_CHUNKS, count)):
            seed = derive_seed(self._config.seed, "draft_pretraining", chunk.start)
            params = SamplingParams(rollout.temperature, rollout.max_new_tokens, seed)
            result = self._engines.generate([prompts[i] for i in chunk], 1, params, speculate=False)
            for completion in result.completions:
                completion.prompt_index += chunk.start
            completions += result.completions
            self._enter(Stage.DRAFT_PRETRAINING, _ROLLOUT_SHARE * chunk.stop / count)
        return to_training_batch(prompts, completions, rollout.temperature)

    def _follow(self, stage: Stage, steps: Iterable[SetUpProgress], done: float) -> None:
        """Report a stage's steps; done is the share of the stage that is already behind it."""
        self._enter(stage, done)
        for progress in steps:
            self._enter(stage, done + (1 - done) * progress.step / progress.num_steps)
            self._reporter.metrics(progress.step, progress.metrics)

    def _enter(self, stage: Stage, fraction: float) -> None:
        self._stop.check()
        self._reporter.stage(stage, 0, fraction)


def _prompts(problems: ArithmeticProblems, tokenizer: Tokenizer, count: int) -> list[list[int]]:
    return [tokenizer.encode(problem.prompt) for problem in problems.problems(0, count)]


def _identity(policy: Path) -> str:
    """What a policy folder holds, as far as its name and its files' times tell."""
    files = sorted(policy.glob("*.safetensors"))
    return "|".join([str(policy.resolve()), *(f"{file.name}:{file.stat().st_mtime_ns}" for file in files)])
