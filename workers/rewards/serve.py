"""A process that scores one response at a time: `python -m workers.rewards.serve REWARD_JSON PARENT_PID`.

Requests and answers are lines of JSON on stdin and stdout. The first answer tells whether the scorer could be made.
"""

import json
import math
import os
import resource
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any

from pydantic import TypeAdapter

from contract.config.reward import CodeReward, MathReward, PythonReward, RewardConfig
from workers.rewards.dying import adopt_orphans, die_with
from workers.rewards.limits import time_limit_s

_MAX_MESSAGE = 1_000
_MATH_MEMORY_BYTES = 4 * 2**30
"""sympy can take any amount for an expression such as 9^9^9^9."""

Score = Callable[[dict[str, Any]], Any]


class _TimeUp(BaseException):
    """Not an Exception, so that a scorer's own handlers let it pass."""


def main() -> None:
    die_with(int(sys.argv[2]))
    adopt_orphans()
    reward = TypeAdapter[RewardConfig](RewardConfig).validate_json(sys.argv[1])
    requests, answers = _take_over_pipes()
    try:
        score, warning = _scorer(reward)
    except ModuleNotFoundError as error:  # a user's module that is missing is told of as ValueError
        needed = f"task.reward of kind {reward.kind} needs the package {error.name}: install foredeck[data] there"
        _answer(answers, {"failure": "raised", "message": needed})
        return
    except Exception as error:
        _answer(answers, {"failure": "raised", "message": str(error)})
        return
    _answer(answers, {"warning": warning})
    signal.signal(signal.SIGALRM, _on_alarm)
    for line in requests:
        _answer(answers, _judged(score, json.loads(line), time_limit_s(reward)))


def _take_over_pipes() -> tuple[IO[str], IO[str]]:
    """(requests, answers), moved away from where a scorer reads and prints; what it prints goes to the log."""
    requests, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    return requests, answers


def _answer(answers: IO[str], content: dict[str, Any]) -> None:
    answers.write(json.dumps(content) + "\n")
    answers.flush()


def _scorer(reward: RewardConfig) -> tuple[Score, str]:
    """(what scores a request, a warning about it or nothing). Libraries are loaded where they are needed."""
    match reward:
        case MathReward():
            from workers.rewards.math_answer import math_reward  # noqa: PLC0415

            resource.setrlimit(resource.RLIMIT_AS, (_MATH_MEMORY_BYTES, _MATH_MEMORY_BYTES))
            math_reward(r"\boxed{1}", "1")  # what it loads at its first use does not count as a response's time
            return lambda request: math_reward(request["text"], request["answer"]), ""
        case CodeReward():
            from workers.rewards.code import CodeScorer  # noqa: PLC0415

            scorer = CodeScorer(reward)
            return lambda request: scorer.score(request["text"], request["answer"]), scorer.warning
        case PythonReward():
            from workers.rewards.python_function import load_function  # noqa: PLC0415

            function = load_function(reward.function)
            return lambda request: function(
                prompt=request["prompt"], response=request["text"], answer=request["answer"]
            ), ""
    raise ValueError(f"a reward of kind {reward.kind} needs no process")


def _judged(score: Score, request: dict[str, Any], limit_s: float) -> dict[str, Any]:
    """{"score": number} or {"failure": kind, "message": why}."""
    try:
        with _limited(limit_s):
            value = score(request)
    except _TimeUp:
        return {"failure": "timeout", "message": f"not back after {limit_s:g} s"}
    except BaseException as error:  # a scorer that exits has raised, too
        return {"failure": "raised", "message": f"{type(error).__name__}: {error}"[:_MAX_MESSAGE]}
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        return {"failure": "invalid", "message": f"gave {value!r:.{_MAX_MESSAGE}}, which is no finite number"}
    return {"score": number}


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _on_alarm(*_: Any) -> None:
    raise _TimeUp


if __name__ == "__main__":
    main()
