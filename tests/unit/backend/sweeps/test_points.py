import pytest

from backend.errors import ProblemError
from backend.refusal import Refused
from backend.sweeps.points import Findings, config_of, points_of, words

K, T = "drafter.draft_length", "rollout.temperature"


def test_a_grid_has_every_combination_and_its_last_axis_changes_first():
    points, problems = points_of({"axes": {K: [1, 3], T: [0.5, 1.0]}}, 10)
    assert points == [{K: 1, T: 0.5}, {K: 1, T: 1.0}, {K: 3, T: 0.5}, {K: 3, T: 1.0}]
    assert problems == []


def test_listed_points_are_those_that_were_given():
    listed = [{K: 1}, {T: 0.5}]
    assert points_of({"points": listed}, 10) == (listed, [])


@pytest.mark.parametrize(
    ("data", "pointer", "detail"),
    [
        ({}, "/axes", "is required, or `points` in its place"),
        ({"axes": {K: [1]}, "points": [{K: 1}]}, "/axes", "leave `axes` or `points` out"),
        ({"axes": {K: [1, 2], T: [1, 2]}}, "/axes", "make 4 runs; a sweep may have 3"),
        ({"axes": {f"a{n}": [1] * 10_000 for n in range(16)}}, "/axes", f"make {10_000**16:,} runs"),
        ({"points": [{K: 1}] * 4}, "/points", "make 4 runs; a sweep may have 3"),
        ({"axes": {"drafter": [{}], K: [1]}}, f"/axes/{K}", "lies in drafter, which is given beside it"),
        ({"points": [{K: 1}, {K: 1, "drafter": {}}]}, f"/points/1/{K}", "lies in drafter"),
    ],
)
def test_points_that_cannot_be_laid_out(data, pointer, detail):
    points, (problem,) = points_of(data, 3)
    assert (points, problem.pointer) == ([], pointer)
    assert detail in problem.detail


def test_a_point_is_laid_over_the_base():
    base = {"drafter": {"kind": "eagle3", "draft_length": 3}, "grpo": {"num_steps": 7}}
    config = config_of(base, {K: 5, "grpo.num_steps": None})
    assert (config.drafter.kind, config.drafter.draft_length) == ("eagle3", 5)
    assert config.grpo.num_steps == type(config.grpo)().num_steps
    assert config_of(base, {"drafter": {"kind": "none"}}).drafter.kind == "none"
    assert base["drafter"]["draft_length"] == 3
    assert isinstance(config_of(base, {"drafter.typo": 1}), Refused)


def test_a_point_in_words():
    assert (
        words({K: 3, "drafter.kind": "ngram", "policy": {"a": None}})
        == 'draft_length=3, kind=ngram, policy={"a": null}'
    )
    assert len(words({"a": "x" * 500})) == 80
    assert words({"a": "line\nbreak"}) == 'a="line\\nbreak"'


def test_the_same_fault_of_several_points_is_told_once():
    axes = {K: [3, 99], T: [1, 2]}
    findings = Findings({"axes": axes})
    points, _ = points_of({"axes": axes}, 10)
    for index in (2, 3):
        fault = ProblemError(pointer="/drafter/draft_length", detail="must be at most 16", value=99)
        findings.add(index, points[index], fault)
    findings.add(0, points[0], ProblemError(pointer="/grpo", detail="needs more"))
    assert [(problem.pointer, problem.detail, problem.value) for problem in findings.problems()] == [
        (f"/axes/{K}/1", "point 3 (draft_length=99, temperature=1): must be at most 16, and of 1 more", 99),
        ("/axes", "point 1 (draft_length=3, temperature=1): grpo: needs more", None),
    ]


def test_a_fault_of_a_listed_point_names_its_key():
    findings = Findings({"points": [{K: 1}, {"drafter": {"kind": "x"}}]})
    findings.add(1, {"drafter": {"kind": "x"}}, ProblemError(pointer="/drafter/kind", detail="knows no x"))
    findings.add(1, {"drafter": {"kind": "x"}}, ProblemError(pointer="", detail="do not fit"))
    assert [(problem.pointer, problem.detail) for problem in findings.problems()] == [
        ("/points/1/drafter", 'point 2 (drafter={"kind": "x"}): drafter.kind: knows no x'),
        ("/points/1", 'point 2 (drafter={"kind": "x"}): do not fit'),
    ]


def test_a_value_is_told_from_one_that_equals_it():
    axes = {"seed": [1, True]}
    findings = Findings({"axes": axes})
    points, _ = points_of({"axes": axes}, 10)
    findings.add(1, points[1], ProblemError(pointer="/seed", detail="must be a whole number", value=True))
    assert [problem.pointer for problem in findings.problems()] == ["/axes/seed/1"]
