"""The reward of a program: its tests, run in a sandbox."""

import re
import time
from typing import Any

from contract.config.reward import CodeReward
from workers.rewards.code_tests import Assertions, Examples, parse_tests
from workers.rewards.sandbox import Sandbox

_BLOCK = re.compile(r"^```[ \t]*(\w*)[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
_PYTHON = ("python", "python3", "py", "")
_TRIAL_S = 10.0
_NOT_ENFORCED = {
    "user": "as this machine's root",
    "network": "with this machine's network",
    "files": "with all files that their user may read",
    "processes": "with processes of their own",
    "memory": "without all limits of resources",
}


class CodeScorer:
    """Scores programs by their tests."""

    def __init__(self, reward: CodeReward) -> None:
        """Raises RuntimeError where the sandbox does not start on this machine."""
        self._reward, self._sandbox = reward, Sandbox(reward.memory_mib)
        trial = self._sandbox.run("print('ready')", _TRIAL_S)
        if trial.enforced is None or not trial.is_done:
            raise RuntimeError(f"task.reward: the sandbox for programs does not start on this machine: {trial.errors}")
        missing = [words for what, words in _NOT_ENFORCED.items() if not trial.enforced[what]]
        self.warning = (
            f"Programs of responses run {' and '.join(missing)}: this system allows no more." if missing else ""
        )
        """What the sandbox cannot take away here."""

    def score(self, text: str, answer: Any) -> float:
        """Whether all tests pass, or with partial credit their share; 0.0 without a program.

        Raises ValueError for tests that are none.
        """
        tests = parse_tests(answer)
        program = last_program(text)
        if program is None:
            return 0.0
        passed = self._assertions(program, tests) if isinstance(tests, Assertions) else self._examples(program, tests)
        return sum(passed) / len(passed) if self._reward.partial_credit else float(all(passed))

    def _assertions(self, program: str, tests: Assertions) -> list[bool]:
        outcome = self._sandbox.run(program, self._reward.timeout_s, tests=tests.pieces)
        return outcome.passed or [False] * len(tests.pieces)

    def _examples(self, program: str, tests: Examples) -> list[bool]:
        """Each in a process of its own; all of them within the time limit."""
        deadline = time.monotonic() + self._reward.timeout_s
        passed: list[bool] = []
        for given, wanted in tests.pairs:
            left_s = deadline - time.monotonic()
            is_over = left_s <= 0 or (not all(passed) and not self._reward.partial_credit)
            if is_over:
                break
            outcome = self._sandbox.run(program, left_s, stdin=given)
            passed.append(outcome.is_done and _is_same(outcome.output, wanted))
        return passed + [False] * (len(tests.pairs) - len(passed))


def last_program(text: str) -> str | None:
    """The last fenced block of Python, or of no named language."""
    programs = [code for language, code in _BLOCK.findall(text) if language.lower() in _PYTHON]
    return programs[-1] if programs else None


def _is_same(output: str, wanted: str) -> bool:
    """Spaces at the ends of lines, and empty lines at the end, do not count."""
    return [line.rstrip() for line in output.rstrip().splitlines()] == [
        line.rstrip() for line in wanted.rstrip().splitlines()
    ]
