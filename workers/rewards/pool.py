"""Scorers in processes of their own, so that a step's responses are scored side by side and none hangs the run."""

import logging
import selectors
from collections import deque
from collections.abc import Callable, Sequence

from contract.config.reward import PythonReward
from workers.rewards.limits import ProcessReward
from workers.rewards.python_function import check_allowed
from workers.rewards.scorer import Failure, Response
from workers.rewards.scoring_process import ScoringProcess

log = logging.getLogger(__name__)

_POLL_S = 0.1


class ScoringPool:
    """A Scorer over processes. One that fails its response by its time or its death is replaced."""

    def __init__(self, reward: ProcessReward, allowed_modules: Sequence[str], interrupt: Callable[[], None]) -> None:
        """Raises ValueError where the reward's scorer cannot be made."""
        if isinstance(reward, PythonReward):
            check_allowed(reward.function, allowed_modules)
        self._reward, self._interrupt = reward, interrupt
        self._processes = [ScoringProcess(reward)]
        try:
            self._await_first()
        except BaseException:
            self.close()
            raise

    def score(self, responses: Sequence[Response]) -> list[float | Failure]:
        """Scores in order. Where `interrupt` raises, the pool is of no more use but to be closed."""
        scoring = _Scoring(responses)
        self._grow(min(self._reward.num_processes, len(responses)))
        while scoring.is_going_on:
            for process in self._processes:
                self._hand_out(process, scoring)
            for process in _with_news(self._processes):
                self._take_in(process, scoring)
            for process in [each for each in self._processes if each.is_overdue]:
                self._replace(process, process.overdue(), scoring)
            self._interrupt()
        return scoring.scores

    def close(self) -> None:
        for process in self._processes:
            process.kill()
        self._processes.clear()

    def _await_first(self) -> None:
        [process] = self._processes
        while not process.is_ready:
            if process.is_overdue:
                raise ValueError(f"task.reward: {process.overdue().message}")
            self._interrupt()
            if _with_news([process]):
                try:
                    answer = process.receive()
                except EOFError:
                    raise ValueError(f"task.reward: {process.ended().message}; the log has its last words") from None
                if answer is not None and "failure" in answer:
                    raise ValueError(answer["message"])
                process.is_ready = answer is not None
                if answer is not None and answer["warning"]:
                    log.warning("%s", answer["warning"])

    def _grow(self, num_processes: int) -> None:
        while len(self._processes) < num_processes:
            self._processes.append(ScoringProcess(self._reward))

    def _hand_out(self, process: ScoringProcess, scoring: "_Scoring") -> None:
        if not process.is_ready or process.task is not None or not scoring.waiting:
            return
        index = scoring.waiting.popleft()
        try:
            process.send(index, scoring.responses[index])
        except BrokenPipeError:
            self._replace(process, process.ended(), scoring)

    def _take_in(self, process: ScoringProcess, scoring: "_Scoring") -> None:
        try:
            answer = process.receive()
        except EOFError:
            self._replace(process, process.ended(), scoring)
            return
        if answer is None:
            return
        if not process.is_ready and "failure" not in answer:
            process.is_ready = True
        elif not process.is_ready:
            self._replace(process, Failure("raised", answer["message"]), scoring)
        elif process.task is not None:
            scoring.put(process.task, answer)
            process.task = None

    def _replace(self, process: ScoringProcess, why: Failure, scoring: "_Scoring") -> None:
        """By a new one. The response that it was at has failed; one that never came up fails the next, so that a
        scorer which cannot start any more ends in failures and not in a wait."""
        index = process.task if process.task is not None else scoring.next_waiting()
        if index is not None:
            scoring.scores[index] = why
            scoring.num_open -= 1
        process.kill()
        self._processes[self._processes.index(process)] = ScoringProcess(self._reward)


class _Scoring:
    """The responses of one call."""

    def __init__(self, responses: Sequence[Response]) -> None:
        self.responses = responses
        self.waiting = deque(range(len(responses)))
        self.scores: list[float | Failure] = [0.0] * len(responses)
        self.num_open = len(responses)

    @property
    def is_going_on(self) -> bool:
        return self.num_open > 0

    def next_waiting(self) -> int | None:
        return self.waiting.popleft() if self.waiting else None

    def put(self, index: int, answer: dict[str, object]) -> None:
        failed = "failure" in answer
        self.scores[index] = Failure(answer["failure"], answer["message"]) if failed else answer["score"]  # type: ignore[arg-type, assignment]
        self.num_open -= 1


def _with_news(processes: Sequence[ScoringProcess]) -> list[ScoringProcess]:
    """Those that have answered or ended, after a short wait where none has."""
    with selectors.DefaultSelector() as selector:
        for process in processes:
            selector.register(process, selectors.EVENT_READ)
        return [key.fileobj for key, _ in selector.select(_POLL_S)]  # type: ignore[misc]
