import json
import math

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from pydantic import ValidationError

from backend import errors
from backend.errors import from_validation, pointer
from backend.runs.schemas import RunCreate
from contract.config import RunConfig


@pytest.fixture
def client():
    app = FastAPI()
    errors.install(app)

    @app.post("/runs")
    def create(body: RunCreate) -> str:
        return body.config.sha256()

    @app.get("/pages")
    def pages(limit: int) -> int:
        return limit

    return TestClient(app)


def problems_of(response):
    assert response.status_code == 422
    assert response.headers["content-type"] == "application/problem+json"
    return {error["pointer"] or error["parameter"]: error for error in response.json()["errors"]}


def test_every_problem_of_a_run_is_told_at_once_where_it_is(client):
    body = {
        "name": "",
        "color": "red",
        "labels": {"a b": "x"},
        "max_attempts": 0,
        "config": {
            "sead": 1,
            "grpo": {"num_steps": 0},
            "policy": {"kind": "scratch", "hidden_size": -1, "nonsense": True},
            "drafter": {"kind": "magic"},
            "rollout": {"temperature": "hot"},
        },
    }
    problems = problems_of(client.post("/runs", json=body))
    assert problems.keys() == {
        "/name",
        "/color",
        "/labels/a b/[key]",
        "/max_attempts",
        "/config/sead",
        "/config/grpo/num_steps",
        "/config/policy/hidden_size",
        "/config/policy/nonsense",
        "/config/drafter",
        "/config/rollout/temperature",
    }
    assert problems["/config/policy/hidden_size"]["value"] == -1
    assert problems["/config/sead"]["detail"] == "unknown key; did you mean seed?"
    assert problems["/config/policy/nonsense"]["detail"] == "unknown key: remove it or mend its spelling"
    assert problems["/config/grpo/num_steps"]["detail"] == "must be at least 1"
    assert problems["/config/rollout/temperature"]["detail"] == "must be a number"
    assert "'eagle3'" in problems["/config/drafter"]["detail"]


def test_rules_across_fields_are_told_beside_the_name(client):
    config = {"policy": {"kind": "scratch", "hidden_size": 100, "num_layers": 2}, "rollout": {"temperature": 0}}
    problems = problems_of(client.post("/runs", json={"name": "\x07", "config": config}))
    assert problems.keys() == {
        "/name",
        "/config/policy/hidden_size",
        "/config/policy/num_layers",
        "/config/rollout/temperature",
    }
    assert problems["/config/policy/hidden_size"]["value"] == 100
    assert "must be a multiple of 8" in problems["/config/policy/hidden_size"]["detail"]


def test_a_rule_about_a_default_points_to_where_the_field_would_be(client):
    problems = problems_of(client.post("/runs", json={"name": "x", "config": {"task": {"num_terms": 5}}}))
    assert "/config/rollout/max_new_tokens" in problems


def test_query_parameters_are_named(client):
    problems = problems_of(client.get("/pages?limit=many"))
    assert problems["limit"]["value"] == "many"
    assert problems["limit"]["pointer"] is None
    assert problems_of(client.get("/pages"))["limit"]["value"] is None


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_numbers_that_json_has_not_do_not_break_the_answer(client, number):
    body = '{"name": "x", "config": {"rollout": {"temperature": NUMBER}}}'.replace("NUMBER", number)
    response = client.post("/runs", content=body, headers={"Content-Type": "application/json"})
    value = problems_of(response)["/config/rollout/temperature"]["value"]
    assert value in {"nan", "inf", "-inf"}


@pytest.mark.parametrize("text", ["\\u0000", "\\ud800", "\\u001b[31m"])
def test_what_no_terminal_or_database_should_see_is_no_name(client, text):
    body = '{"name": "aTEXTb", "config": {}}'.replace("TEXT", text)
    assert "/name" in problems_of(client.post("/runs", content=body, headers={"Content-Type": "application/json"}))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("api_token", "abc"),
        ("PASSWORD", "abc"),
        ("notes", 5),
        ("harmless", "fdk_00000000_abc"),
        ("url", "https://user:pw@host/x"),
        ("header", "Bearer abc"),
    ],
)
def test_secrets_are_not_repeated(client, key, value):
    problem = problems_of(client.post("/runs", json={"name": "x", "config": {}, key: value}))[f"/{key}"]
    assert problem["value"] == (5 if value == 5 else "[redacted]")


def test_long_values_are_cut_and_objects_left_out(client):
    problems = problems_of(client.post("/runs", json={"name": "n" * 10_000, "config": [1, 2], "cluster": {"a": 1}}))
    assert len(problems["/name"]["value"]) == errors.MAX_VALUE_LENGTH
    assert problems["/config"]["value"] is None
    assert problems["/cluster"]["value"] is None


def test_the_summary_names_the_first_and_counts_the_rest(client):
    response = client.post("/runs", json={"name": "", "max_attempts": 0, "config": {}})
    assert response.json()["detail"] == "/name: must not be empty, and 1 more."


@pytest.mark.parametrize(
    ("location", "body", "expected"),
    [
        (
            ("config", "policy", "scratch", "hidden_size"),
            {"config": {"policy": {"kind": "scratch"}}},
            "/config/policy/hidden_size",
        ),
        (("config", "trainer", "kind"), {"config": {"trainer": {"kind": "x"}}}, "/config/trainer/kind"),
        (("a", 1, "b"), {"a": [{}, {}]}, "/a/1/b"),
        (("a/b", "c~d"), {}, "/a~1b/c~0d"),
        ((), {}, ""),
        (("a", "b"), None, "/a/b"),
    ],
)
def test_pointers(location, body, expected):
    assert pointer(location, body) == expected


def test_a_pointer_leads_to_the_refused_value():
    """Followed by the rules of RFC 6901, each pointer arrives at the value that the problem shows."""
    body = {"grpo": {"num_steps": -3}, "drafter": {"kind": "eagle3", "draft_length": 99}, "seed": math.pi}
    with pytest.raises(ValidationError) as raised:
        RunConfig.model_validate(body)
    problems = from_validation(raised.value, body, "/overrides")
    assert len(problems) == 3
    for problem in problems:
        here = {"overrides": body}
        for part in problem.pointer.split("/")[1:]:
            here = here[part]
        assert here == problem.value


def test_the_answer_is_json_for_any_value(client):
    response = client.post("/runs", json={"name": None, "config": None, "labels": {"a": None}})
    assert json.loads(response.text)["status"] == 422
