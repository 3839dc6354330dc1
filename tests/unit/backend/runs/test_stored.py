from typing import Any

from backend.runs.stored import as_meant, current
from contract.config import RunConfig


def without(config: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in config.items() if key not in keys}


def stored(drafter: dict[str, Any]) -> dict[str, Any]:
    """As a version before the controller, the other drafters and truncation stored it."""
    config = RunConfig.model_validate({"drafter": drafter}).model_dump(mode="json")
    rollout = without(config["rollout"], "top_p", "top_k", "min_p")
    older = without(config["drafter"], "draft_length_control", "draft_vocabulary_size")
    return without(config, "job") | {"rollout": rollout, "drafter": older}


def test_a_draft_length_from_before_the_controller_is_fixed() -> None:
    resolved = current(stored({"kind": "eagle3", "draft_length": 3}))
    assert resolved is not None
    assert (resolved.drafter.kind, resolved.drafter.draft_length_control) == ("eagle3", "fixed")
    assert (resolved.job, resolved.rollout.top_p, resolved.rollout.top_k, resolved.rollout.min_p) == ("grpo", 1, 0, 0)


def test_one_that_says_how_it_is_chosen_stays_as_it_is() -> None:
    config = RunConfig.model_validate({}).model_dump(mode="json")
    assert as_meant(config) == config
    assert current(config) == RunConfig.model_validate(config)


def test_without_a_drafter_there_is_nothing_to_add() -> None:
    assert current(stored({"kind": "none"})) == RunConfig.model_validate({"drafter": {"kind": "none"}})


def test_what_is_not_valid_any_more_is_told_by_nothing() -> None:
    assert current({"drafter": {"kind": "crystal_ball"}}) is None
    assert current({"drafter": "eagle3"}) is None
