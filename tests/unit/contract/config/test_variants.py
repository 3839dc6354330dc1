"""A part whose kind changes keeps what the new kind knows, and nothing that is in its way."""

from itertools import permutations
from typing import Any, get_args

import pytest
from pydantic import BaseModel

from contract.config import RunConfig
from contract.config.variants import carried_over

REQUIRED = {
    "path": "/models/a",
    "name": "me/sums",
    "function": "module:function",
    "train": {"kind": "jsonl", "path": "/data/a.jsonl"},
}
"""Values of the keys without a default."""
Path = tuple[tuple[str, str | None], ...]
"""Keys down to a part, each with its kind on the way where it has one."""


def _unions(model: type[BaseModel], path: Path = ()) -> dict[Path, list[type[BaseModel]]]:
    """The variants of every discriminated union, by its place."""
    found = {}
    for key, field in model.model_fields.items():
        options = [option for option in get_args(field.annotation) or [field.annotation] if isinstance(option, type)]
        variants = [option for option in options if issubclass(option, BaseModel)]
        if field.discriminator:
            found[(*path, (key, None))] = variants
        for variant in variants:
            found |= _unions(variant, (*path, (key, _kind(variant))))
    return found


def _kind(variant: type[BaseModel]) -> str | None:
    return variant.model_fields["kind"].default if "kind" in variant.model_fields else None


def _at(path: Path, part: dict[str, Any]) -> dict[str, Any]:
    """A configuration with the part at its place."""
    for key, kind in reversed(path):
        part = {key: part | ({"kind": kind} if kind else {})}
    return part


def _needed(variant: type[BaseModel]) -> dict[str, Any]:
    needed = {key: REQUIRED[key] for key, field in variant.model_fields.items() if field.is_required()}
    return {"kind": _kind(variant)} | needed


UNIONS = _unions(RunConfig)
SWITCHES = [
    pytest.param(path, *pair, id="-".join([".".join(key for key, _ in path), *(str(_kind(each)) for each in pair)]))
    for path, variants in UNIONS.items()
    for pair in permutations(variants, 2)
]


def test_the_unions_are_found() -> None:
    assert {".".join(key for key, _ in path) for path in UNIONS} >= {"policy", "drafter", "trainer.optimizer"}


@pytest.mark.parametrize(("path", "former", "chosen"), SWITCHES)
def test_a_whole_part_takes_any_other_kind(path, former, chosen) -> None:
    whole = former.model_validate(_needed(former)).model_dump(mode="json")
    kept = carried_over(_at(path, whole), _at(path, _needed(chosen)))
    for key, _ in path:
        kept = kept[key]
    assert chosen.model_validate(kept | _needed(chosen)) == chosen.model_validate(_needed(chosen))


def test_what_was_chosen_and_the_new_kind_knows_stays() -> None:
    drafter = {"kind": "eagle3", "draft_length": 3, "draft_vocabulary_size": 20, "online": {"batch_size": 4}}
    assert carried_over({"drafter": drafter, "seed": 1}, {"drafter": {"kind": "mtp"}}) == {
        "drafter": {"draft_length": 3, "online": {"batch_size": 4}},
        "seed": 1,
    }
    assert carried_over({"drafter": drafter}, {"drafter": {"kind": "none"}}) == {"drafter": {}}


def test_a_folder_and_the_former_kinds_defaults_go() -> None:
    trained = {"kind": "eagle3", "path": "/drafts/eagle3"}
    assert carried_over({"drafter": trained}, {"drafter": {"kind": "mtp"}}) == {"drafter": {}}
    lookup = RunConfig.model_validate({"drafter": {"kind": "ngram", "min_match_tokens": 3}}).model_dump(mode="json")
    assert carried_over(lookup, {"drafter": {"kind": "suffix"}})["drafter"] == {"min_match_tokens": 3}


@pytest.mark.parametrize(
    "change", [{"draft_length": 5}, {"kind": "eagle3"}, {"kind": None}, {"kind": "magic"}, {"kind": []}]
)
def test_without_another_kind_all_stays(change: dict[str, Any]) -> None:
    config = {"drafter": {"kind": "eagle3", "path": "/a", "draft_length": 6}, "of_old": [1]}
    assert carried_over(config, {"drafter": change, "seed": 3}) == config


def test_a_part_that_names_no_kind_is_of_the_default_kind() -> None:
    config = {"drafter": {"draft_length": 3, "draft_vocabulary_size": 20}}
    assert carried_over(config, {"drafter": {"kind": "ngram"}}) == {"drafter": {"draft_length": 3}}
    assert carried_over(config, {"drafter": {"draft_length": 4}}) == config


def test_a_misspelt_key_stays_to_be_refused() -> None:
    config = {"drafter": {"kind": "eagle3", "draft_lenght": 5}}
    assert carried_over(config, {"drafter": {"kind": "none"}}) == {"drafter": {"draft_lenght": 5}}
