"""From a configuration to everything that the loop needs: actors, starting policy, starting draft head."""

import logging
import shutil
import time
from pathlib import Path

from contract.config import RunConfig
from contract.config.drafter import TrainedDrafter
from contract.config.policy import CheckpointPolicy
from contract.sizing.memory import num_generation_devices, num_training_devices
from contract.telemetry.stages import Stage
from workers.data.problem import Task
from workers.data.tokenizer import load_tokenizer
from workers.loop import Parts
from workers.placement.engines import RemoteEngines
from workers.placement.processes import Processes
from workers.placement.trainers import RemoteTrainer
from workers.placement.weight_transfer import WeightTransfer
from workers.ray_calls import RayCalls
from workers.rewards.scorer import Scorer
from workers.set_up_report import SetUpReport
from workers.starting_draft import StartingDraft
from workers.starting_folders import architecture_in
from workers.stopping import StopWatch
from workers.telemetry.cluster_hardware import ClusterHardware
from workers.telemetry.reporter import Reporter
from workers.throughput import Sizing
from workers.train.cache import write_folder
from workers.train.checkpoint import CheckpointStore, RunProgress
from workers.train.warm_up import warm_up_folder

log = logging.getLogger(__name__)

_PATIENCE_S = 30.0


class SetUp:
    """Starts the actors and brings them to the point from which the loop goes on."""

    def __init__(
        self,
        config: RunConfig,
        cache_dir: Path,
        store: CheckpointStore,
        *,
        task: Task,
        scorer: Scorer,
        reporter: Reporter,
        stop: StopWatch,
        run: str,
    ) -> None:
        self._config, self._cache_dir, self._store = config, cache_dir, store
        self._task, self._scorer = task, scorer
        self._report, self._stop = SetUpReport(reporter, stop), stop
        self._calls = RayCalls(stop.interrupt)
        self._processes = Processes(config, run)
        self._trainer = RemoteTrainer(self._processes.trainers, self._calls)
        self._engines = RemoteEngines(self._processes.engines, self._calls, config.rollout.max_batch_size)
        self._draft: StartingDraft | None = None
        if isinstance(config.drafter, TrainedDrafter):
            self._draft = StartingDraft(config, task, cache_dir, self._trainer, self._engines, self._calls)

    def run(self) -> tuple[Parts, RunProgress]:
        """Warm up and pretrain where no cached result and no checkpoint makes it unnecessary."""
        self._wait_for_processes()
        found = self._store.newest()
        if found is not None:
            folder, progress = found
            log.info("Resuming after step %d from %s.", progress.step, folder)
            return self._build(folder / "policy", folder / "draft" if self._draft else None, folder), progress
        policy = self._starting_policy()
        draft = self._draft.folder(policy, self._report) if self._draft else None
        if self._draft and draft:
            self._draft.measure(policy, draft, self._report)
        return self._build(policy, draft, None), RunProgress()

    def train_draft(self, storage: Path) -> Path:
        """The whole of a job draft_training: train the draft, report what it is worth, and keep it in the run's folder.

        What an earlier attempt finished is found in the cache. Returns the draft's folder.
        """
        assert self._draft is not None
        self._wait_for_processes()
        policy = self._starting_policy()
        trained = self._draft.folder(policy, self._report)
        self._draft.measure(policy, trained, self._report)
        kept = storage / "draft"
        write_folder(kept, lambda part: shutil.copytree(trained, part, dirs_exist_ok=True), replace=True)
        size_bytes = sum(file.stat().st_size for file in kept.iterdir())
        self._report.reporter.checkpoint(0, str(kept), size_bytes)
        log.info("The trained draft is complete. Give its folder as drafter.path: %s", kept)
        return kept

    def _wait_for_processes(self) -> None:
        """Until the cluster has room for all of them; says so where that takes long, and ends where it need not be."""
        begun, said = time.monotonic(), False

        def interrupt() -> None:
            nonlocal said
            self._stop.check()
            if not said and time.monotonic() - begun > _PATIENCE_S:
                said = True
                log.warning("Still waiting for the cluster to start the run's processes; other runs may hold it.")

        self._processes.wait(RayCalls(interrupt), self._calls)

    def _build(self, policy: Path, draft: Path | None, checkpoint: Path | None) -> Parts:
        """The loop's parts with their weights, and the trainer's state where there is a checkpoint."""
        building = self._trainer.build(policy, draft, self._processes.trainer_address)
        self._engines.build(self._config, policy, draft)
        self._trainer.built(building)
        if checkpoint is not None:
            self._trainer.load(checkpoint)
        hardware, has_gpus = ClusterHardware(), self._config.resources.gpus_per_node > 0
        return Parts(
            engine=self._engines,
            trainer=self._trainer,
            sync=WeightTransfer(
                self._config,
                self._processes.layout,
                self._trainer,
                self._engines,
                self._calls,
                has_draft=draft is not None,
            ),
            tokenizer=load_tokenizer(policy),
            task=self._task,
            scorer=self._scorer,
            reporter=self._report.reporter,
            checkpoints=self._store,
            check_stop=self._stop.check,
            hardware=hardware.metrics,
            sizing=Sizing(
                architecture_in(policy),
                num_generation_devices(self._config),
                num_training_devices(self._config),
                is_shared=has_gpus and self._config.resources.placement == "colocated",
                peak_tflops=hardware.peak_tflops() if has_gpus else None,
            ),
        )

    def _starting_policy(self) -> Path:
        config = self._config
        if isinstance(config.policy, CheckpointPolicy):
            return Path(config.policy.path)
        folder = warm_up_folder(self._cache_dir, config.policy, config.task, config.trainer, config.seed)
        if folder.is_dir():
            log.info("The starting policy comes from %s.", folder)
        else:
            log.info("Warming up the starting policy in %d steps. It will be kept.", config.policy.warm_up.num_steps)
            stream = self._trainer.first.warm_up.options(num_returns="streaming").remote(str(folder))
            self._report.follow(Stage.WARM_UP, self._calls.stream("Trainer rank 0", stream))
        return folder
