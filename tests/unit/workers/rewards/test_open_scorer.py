from contract.config import RunConfig
from workers.rewards.open_scorer import open_scorer
from workers.rewards.scorer import Response


def scores(config, *texts):
    scorer = open_scorer(config, [], lambda: None)
    found = scorer.score([Response("p", text, "4", 3, False) for text in texts])
    scorer.close()
    return found


def test_texts_are_compared_in_the_drivers_own_process():
    task = {"kind": "dataset", "train": {"kind": "jsonl", "path": "/data/a.jsonl"}}
    policy = {"kind": "checkpoint", "path": "/models/a"}
    exact = RunConfig.model_validate({"policy": policy, "task": task | {"reward": {"kind": "exact", "mark": "=>"}}})
    assert scores(exact, "=> 4", "#4") == [1, 0]
    assert scores(RunConfig(), "#4", "=> 4") == [1, 0]


def test_a_reward_with_processes_is_that_of_its_kind():
    task = {"kind": "dataset", "train": {"kind": "jsonl", "path": "/a"}, "reward": {"kind": "code", "num_processes": 1}}
    config = RunConfig.model_validate({"policy": {"kind": "checkpoint", "path": "/models/a"}, "task": task})
    scorer = open_scorer(config, [], lambda: None)
    try:
        text = "```python\ndef double(x): return 2 * x\n```"
        responses = [Response("p", text, answer, 3, False) for answer in ("assert double(2) == 4", 5)]
        passed, failed = scorer.score(responses)
    finally:
        scorer.close()
    assert passed == 1
    assert (failed.kind, "neither texts of Python" in failed.message) == ("raised", True)
