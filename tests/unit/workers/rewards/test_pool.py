"""The pool with real processes: whatever a scorer does, every response gets an answer and nothing is left running."""

import sys
import textwrap
import time

import psutil
import pytest

from contract.config.reward import MathReward, PythonReward
from workers.rewards.pool import ScoringPool
from workers.rewards.scorer import Failure, Response

MODULE = """
    import math, os, signal, subprocess, sys, time

    def reward(prompt, response, answer):
        if response == "environment":
            return float(any(name.startswith("FOREDECK_") for name in os.environ))
        if response == "input":
            return float(sys.stdin.read() == "")
        if response == "print":
            print("{}", flush=True)
            return 1
        if response == "raise":
            raise KeyError(prompt)
        if response == "exit":
            sys.exit(3)
        if response == "die":
            os._exit(3)
        if response == "hang":
            time.sleep(60)
        if response == "hang for good":
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
            child = subprocess.Popen(["sleep", "60"], start_new_session=True)
            with open(answer, "w") as file:
                file.write(str(child.pid))
            time.sleep(60)
        return {"nan": math.nan, "none": None, "word": "1.5", "huge": 10**400}.get(response, answer)

    def broken(
"""


@pytest.fixture(scope="module")
def modules(tmp_path_factory):
    """A folder on the import path with a reward of the user's."""
    folder = tmp_path_factory.mktemp("modules")
    (folder / "tried_rewards.py").write_text(textwrap.dedent(MODULE).rpartition("def broken")[0])
    (folder / "broken_rewards.py").write_text(textwrap.dedent(MODULE))
    sys.path.insert(0, str(folder))
    yield folder
    sys.path.remove(str(folder))


@pytest.fixture(scope="module")
def pool(modules):
    reward = PythonReward(function="tried_rewards:reward", timeout_s=0.5, num_processes=2)
    made = ScoringPool(reward, ["tried_rewards"], lambda: None)
    yield made
    made.close()


def is_running(pid):
    """A process that is dead and whose parent has not taken note of it yet does not run."""
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def responses(*texts, answer=1):
    return [Response("say", text, answer, 5, False) for text in texts]


def test_scores_come_in_order(pool):
    assert pool.score([Response("p", "x", i, 1, False) for i in range(20)]) == list(range(20))
    assert pool.score([]) == []


def test_a_function_sees_no_secret_and_its_prints_harm_nothing(pool, monkeypatch):
    monkeypatch.setenv("FOREDECK_ASSIGNMENT", "secret")
    assert pool.score(responses("environment", "input", "print", "word")) == [0, 1, 1, 1.5]


def test_what_raises_or_is_no_number_fails_alone(pool):
    scores = pool.score(responses("raise", "x", "exit", "nan", "none", "huge", "x"))
    kinds = [score.kind if isinstance(score, Failure) else score for score in scores]
    assert kinds == ["raised", 1, "raised", "invalid", "invalid", "invalid", 1]
    assert scores[0].message == "KeyError: 'say'"
    assert "SystemExit" in scores[2].message
    assert "nan" in scores[3].message


def test_what_hangs_or_dies_fails_in_time_and_leaves_nothing_behind(pool, tmp_path):
    begun = time.monotonic()
    given = responses("hang", "hang for good", "die", "x", answer=str(tmp_path / "child"))
    scores = pool.score([*given[:3], Response("say", "x", 7, 1, False)])
    assert [score.kind for score in scores[:3]] == ["timeout", "timeout", "died"]
    assert scores[3] == 7
    assert "not back after 0.5 s" in scores[0].message
    assert "exit code 3" in scores[2].message
    assert time.monotonic() - begun < 30
    assert not is_running(int((tmp_path / "child").read_text()))
    assert pool.score(responses("x")) == [1]


def test_an_interruption_ends_the_wait(modules):
    class Stopped(Exception):
        pass

    is_stopped = False

    def interrupt():
        if is_stopped:
            raise Stopped

    before = {process.pid for process in psutil.Process().children()}
    reward = PythonReward(function="tried_rewards:reward", timeout_s=60, num_processes=1)
    pool = ScoringPool(reward, ["tried_rewards"], interrupt)
    [scoring] = [process for process in psutil.Process().children() if process.pid not in before]
    is_stopped = True
    with pytest.raises(Stopped):
        pool.score(responses("hang"))
    pool.close()
    assert not is_running(scoring.pid)


def test_a_function_that_cannot_be_had_is_told_before_anything_runs(modules):
    with pytest.raises(ValueError, match=r"tried_rewards:reward: the cluster.* of these modules: none\. Let an admin"):
        ScoringPool(PythonReward(function="tried_rewards:reward"), [], lambda: None)
    with pytest.raises(ValueError, match="importing broken_rewards raised SyntaxError"):
        ScoringPool(PythonReward(function="broken_rewards:broken"), ["broken_rewards"], lambda: None)


def test_mathematics_that_takes_for_ever_is_a_counted_failure():
    pool = ScoringPool(MathReward(timeout_s=0.5, num_processes=1), [], lambda: None)
    texts = (r"\boxed{5}", r"\boxed{9^{9^{9^{9}}}}", "Answer: 6")
    right, tower, wrong = pool.score([Response("p", text, "5", 1, False) for text in texts])
    pool.close()
    assert (right, wrong) == (1, 0)
    assert tower.kind == "timeout"
