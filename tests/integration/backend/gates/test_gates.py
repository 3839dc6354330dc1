"""Gates from the launch to the verdict, over HTTP and PostgreSQL."""

import json
import math
from uuid import uuid4
from xml.etree import ElementTree

import pytest
from sqlalchemy import text

from backend.gates import service
from contract.telemetry.alarms import AlarmName
from contract.telemetry.events import Alarm, Finished, Metrics
from tests.integration.backend.gates.conftest import noisy, steps

CONFIG = {"grpo": {"num_steps": 7}, "drafter": {"kind": "none"}}


def gates_of(client, run_id, suffix="", **parameters):
    return client.get(f"/api/v1/runs/{run_id}/gates{suffix}", params=parameters)


def test_a_run_is_judged_when_it_ends(client, launch, report, work):
    gates = [{"assertion": "acceptance_length >= 2.8"}, {"assertion": "reward >= 0.9", "name": "learned"}]
    run = launch(gates=gates)
    assert (run["gates_verdict"], [gate["assertion"] for gate in run["gates"]]) == (
        "pending",
        ["acceptance_length >= 2.8", "reward >= 0.9"],
    )
    before = gates_of(client, run["id"]).json()
    assert (before["verdict"], before["evaluation"], before["evaluations"]) == ("pending", None, [])
    report(run["id"], *steps(length=noisy(3.0), reward=noisy(0.5)), Finished(outcome="succeeded"))
    assert client.get(f"/api/v1/runs/{run['id']}").json()["gates_verdict"] == "pending"
    work()
    found = gates_of(client, run["id"]).json()
    evaluation = found["evaluation"]
    assert (found["verdict"], evaluation["trigger"], evaluation["run_status"]) == ("failed", "end", "succeeded")
    assert (evaluation["num_gates"], evaluation["num_failed"], evaluation["evaluated_by"]) == (2, 1, None)
    assert [(each["name"], each["verdict"]) for each in evaluation["results"]] == [
        ("acceptance_length >= 2.8", "passed"),
        ("learned", "failed"),
    ]
    (listed,) = client.get("/api/v1/runs").json()["items"]
    assert listed["gates_verdict"] == "failed"
    log = client.get(f"/api/v1/runs/{run['id']}/logs").json()["items"]
    assert ("error", "1 of 2 gates passed.") in [(line["level"], line["message"]) for line in log]


def test_a_run_without_gates_has_no_verdict(client, ended):
    run_id = ended({"reward": noisy(0.5)})
    found = gates_of(client, run_id).json()
    assert (found["verdict"], found["gates"], found["evaluation"]) == (None, [], None)
    assert gates_of(client, run_id, ".md").text.startswith("## No gates")
    assert ElementTree.fromstring(gates_of(client, run_id, ".xml").content).get("tests") == "1"


def test_a_run_that_failed_is_judged_by_what_there_is(client, ended):
    gates = [{"assertion": "reward >= 0.4"}, {"assertion": "reward >= 0.4 over steps 50..60"}]
    run_id = ended({"reward": noisy(0.5)}, gates, outcome="failed")
    evaluation = gates_of(client, run_id).json()["evaluation"]
    assert evaluation["run_status"] == "failed"
    assert [each["verdict"] for each in evaluation["results"]] == ["passed", "no_data"]


def test_a_run_that_never_ran_has_failed_its_gates(client, launch, work):
    run_id = launch(gates=[{"assertion": "reward >= 0"}])["id"]
    client.post(f"/api/v1/runs/{run_id}/stop")
    work()
    found = gates_of(client, run_id).json()
    assert (found["verdict"], found["evaluation"]["results"][0]["verdict"]) == ("failed", "no_data")


def test_windows_and_pooling(client, ended):
    """Ten rounds at length 2, then 90 at length 4: pooled 3.8; of the last two steps 4."""
    series = {"length": [2.0, 4.0, 4.0], "rounds": [10, 45, 45], "time": [1.0] * 3}
    gates = [
        {"assertion": "acceptance_length >= 0"},
        {"assertion": "acceptance_length >= 0 over last 2 steps"},
        {"assertion": "acceptance_length >= 0 over steps 1..1"},
        {"assertion": "median(acceptance_length) >= 0"},
        {"assertion": "max(acceptance_length) >= 4"},
    ]
    results = gates_of(client, ended(series, gates)).json()["evaluation"]["results"]
    assert [each["estimate"] for each in results] == pytest.approx([3.8, 4, 2, 4, 4])
    assert [each["num_values"] for each in results] == [3, 2, 1, 3, 3]
    assert (results[1]["first_step"], results[1]["last_step"]) == (2, 3)
    assert "pooled" in results[0]["method"]


def test_the_last_steps_are_the_runs_also_for_what_is_measured_now_and_then(client, ended):
    speedup = [None] * 40
    speedup[9] = speedup[19] = speedup[29] = 1.5
    results = gates_of(
        client,
        ended({"speedup": speedup, "time": [1.0] * 40}, [{"assertion": "generation_speedup >= 1 over last 15 steps"}]),
    ).json()["evaluation"]["results"]
    assert (results[0]["first_step"], results[0]["last_step"], results[0]["num_values"]) == (30, 30, 1)


def test_of_a_step_that_two_attempts_reached_the_newest_counts(client, launch, report, work):
    run_id = launch(gates=[{"assertion": "reward >= 0.5"}])["id"]
    report(run_id, *steps(reward=[0.0, 0.0, 0.0]))
    report(run_id, *steps(reward=[1.0, 1.0, 1.0]), Finished(outcome="succeeded"), attempt=2)
    work()
    (result,) = gates_of(client, run_id).json()["evaluation"]["results"]
    assert (result["estimate"], result["verdict"], result["num_values"]) == (1.0, "passed", 3)


def test_values_that_are_not_finite_fail_a_gate(client, ended):
    run_id = ended({"reward": [0.5, math.nan, math.inf, 0.5]}, [{"assertion": "reward >= 0"}])
    (result,) = gates_of(client, run_id).json()["evaluation"]["results"]
    assert (result["verdict"], result["num_values"], result["num_non_finite"]) == ("failed", 4, 2)
    assert "2 of 4 values" in result["reason"]


def test_alarms(client, launch, report, work):
    run_id = launch(
        gates=[{"assertion": text} for text in ("no alarms", "no no_speedup", "no alarms over last 1 step")]
    )["id"]
    raised = [Alarm(step=2, name=AlarmName.DISTRIBUTION_DRIFT, is_raised=up, message="m") for up in (True, False)]
    report(run_id, *steps(time=[1.0] * 9), *raised, Finished(outcome="succeeded"))
    work()
    results = gates_of(client, run_id).json()["evaluation"]["results"]
    assert [each["verdict"] for each in results] == ["failed", "passed", "passed"]
    assert results[0]["reason"] == "Raised: distribution_drift at step 2."


def test_the_newest_green_run_with_a_label_is_the_baseline(client, ended):
    main = {"labels": {"branch": "main"}}
    kept = [{"assertion": "reward >= 0.1"}]
    ended({"reward": noisy(0.9)}, kept, **main)
    expected = ended({"reward": noisy(0.6)}, kept, **main)
    ended({"reward": noisy(0.2)}, [{"assertion": "reward >= 0.5"}], **main)  # red: its gates failed
    ended({"reward": noisy(0.2)}, kept, outcome="failed", **main)
    ended({"reward": noisy(0.2)}, kept, labels={"branch": "other"})
    gate = {"assertion": "reward >= baseline - 0.02", "baseline": "label:branch:main"}
    run_id = ended({"reward": noisy(0.5)}, [gate], **main)
    (result,) = gates_of(client, run_id).json()["evaluation"]["results"]
    assert (result["baseline"]["run_id"], result["baseline"]["is_paired"]) == (expected, True)
    assert result["limit"] == pytest.approx(result["baseline"]["estimate"] - 0.02)
    assert (result["verdict"], result["is_passed"]) == ("failed", False)


def test_the_first_run_ever_passes_and_says_why(client, ended):
    gate = {"assertion": "reward >= baseline", "baseline": "label:branch:main"}
    run_id = ended({"reward": noisy(0.5)}, [gate, {**gate, "on_no_baseline": "fail"}], labels={"branch": "main"})
    first, second = gates_of(client, run_id).json()["evaluation"]["results"]
    assert [(each["verdict"], each["is_passed"]) for each in (first, second)] == [
        ("no_baseline", True),
        ("no_baseline", False),
    ]
    assert "No earlier run labelled branch:main" in first["reason"]


def test_a_run_is_compared_with_none_that_came_later(client, ended):
    gate = {"assertion": "reward >= baseline", "baseline": "label:branch:main"}
    first = ended({"reward": noisy(0.5)}, [gate], labels={"branch": "main"})
    ended({"reward": noisy(0.9)}, labels={"branch": "main"})
    again = client.post(f"/api/v1/runs/{first}/gates/evaluate", json={}).json()
    assert again["results"][0]["verdict"] == "no_baseline"


def test_a_clone_inherits_the_gates_and_is_compared_with_its_origin(client, ended, report, work):
    gate = {"assertion": "reward >= baseline - 0.02", "baseline": "origin"}
    origin = ended({"reward": noisy(0.5)})
    clone = client.post(f"/api/v1/runs/{origin}/clone", json={"gates": [gate]}).json()
    report(clone["id"], *steps(reward=noisy(0.5)), Finished(outcome="succeeded"))
    work()
    (result,) = gates_of(client, clone["id"]).json()["evaluation"]["results"]
    assert (result["verdict"], result["baseline"]["run_id"]) == ("passed", origin)
    second = client.post(f"/api/v1/runs/{clone['id']}/clone", json={}).json()
    assert second["gates"] == clone["gates"]
    assert second["gates_verdict"] == "pending"


def test_a_baseline_without_the_metric_is_none(client, ended):
    other = ended({"reward": noisy(0.5)})
    gate = {"assertion": "acceptance_length >= baseline", "baseline": f"run:{other}"}
    (result,) = gates_of(client, ended({"length": noisy(3.0)}, [gate])).json()["evaluation"]["results"]
    assert (result["verdict"], result["is_passed"]) == ("no_baseline", True)
    assert "no value of rollout/acceptance_length_tokens" in result["reason"]


@pytest.mark.parametrize(
    ("gate", "pointer", "words"),
    [
        ({"assertion": "acceptence_length >= 1"}, "/gates/0/assertion", "perhaps acceptance_length"),
        ({"assertion": "reward >= 1; DROP TABLE run"}, "/gates/0/assertion", "at character 12: found ;"),
        ({"assertion": "x" * 401}, "/gates/0/assertion", "at most 400"),
        ({"assertion": "reward >= baseline"}, "/gates/0/baseline", "say which"),
        ({"assertion": "reward >= 1", "baseline": "origin"}, "/gates/0/baseline", "does nothing"),
        ({"assertion": "reward >= baseline", "baseline": "label:x"}, "/gates/0/baseline", "expected <key>:<value>"),
        (
            {"assertion": "reward >= baseline", "baseline": "label:x:\x00"},
            "/gates/0/baseline",
            "expected <key>:<value>",
        ),
        ({"assertion": "reward >= baseline", "baseline": "origin"}, "/gates/0/baseline", "not cloned"),
        ({"assertion": "reward >= baseline", "baseline": f"run:{uuid4()}"}, "/gates/0/baseline", "no such run"),
        ({"assertion": "reward >= 1", "confidence": 1}, "/gates/0/confidence", "at most 0.999"),
        ({"assertion": "reward >= 1", "on_undecided": "maybe"}, "/gates/0/on_undecided", "must be"),
        ({"assertion": "reward >= 1", "verdict": "passed"}, "/gates/0/verdict", "unknown key"),
        ({}, "/gates/0/assertion", "is required"),
    ],
)
def test_bad_gates_are_refused_at_launch_and_on_demand(client, launch, gate, pointer, words):
    run_id = launch()["id"]
    for path, body in (
        ("/api/v1/runs", {"name": "x", "config": CONFIG}),
        (f"/api/v1/runs/{run_id}/gates/evaluate", {}),
        (f"/api/v1/runs/{run_id}/clone", {}),
    ):
        response = client.post(path, json={**body, "gates": [gate]})
        if path.endswith("clone") and gate.get("baseline") == "origin":
            continue  # a clone has one
        assert response.status_code == 422, response.text
        assert response.headers["content-type"] == "application/problem+json"
        (error,) = response.json()["errors"]
        assert error["pointer"] == pointer
        assert words in error["detail"]
    assert len(client.get("/api/v1/runs").json()["items"]) <= 2


def test_there_are_not_more_gates_than_can_be_read(client):
    body = {"name": "x", "config": CONFIG, "gates": [{"assertion": "no alarms"}] * 33}
    assert client.post("/api/v1/runs", json=body).json()["errors"][0]["pointer"] == "/gates"


def test_gates_on_demand_become_the_verdict_of_a_run_that_has_ended(client, ended):
    run_id = ended({"reward": noisy(0.5)}, [{"assertion": "reward >= 0.4"}])
    url = f"/api/v1/runs/{run_id}/gates/evaluate"
    asked = client.post(url, json={"gates": [{"assertion": "reward >= 0.9"}]})
    assert (asked.status_code, asked.json()["verdict"], asked.json()["trigger"]) == (200, "failed", "request")
    assert asked.json()["evaluated_by"]
    found = gates_of(client, run_id).json()
    assert (found["verdict"], found["evaluation"]) == ("failed", asked.json())
    assert [each["verdict"] for each in found["evaluations"]] == ["failed", "passed"]
    older = found["evaluations"][1]["id"]
    assert gates_of(client, run_id, evaluation_id=older).json()["evaluation"]["verdict"] == "passed"
    assert gates_of(client, run_id, ".md", evaluation_id=older).text.startswith("## ✅ Gates passed")
    assert client.post(url, json={}).json()["verdict"] == "passed"
    assert client.get(f"/api/v1/runs/{run_id}").json()["gates_verdict"] == "passed"


def test_a_live_run_is_judged_by_what_there_is_and_stays_pending(client, launch, report):
    run_id = launch(gates=[{"assertion": "reward >= 0.9"}])["id"]
    report(run_id, *steps(reward=noisy(0.5)))
    assert client.post(f"/api/v1/runs/{run_id}/gates/evaluate", json={}).json()["verdict"] == "failed"
    found = gates_of(client, run_id).json()
    assert (found["verdict"], found["evaluation"]["run_status"]) == ("pending", "running")


def test_what_was_never_asked_cannot_be_judged(client, launch):
    run_id = launch()["id"]
    for body in ({}, {"gates": []}):
        response = client.post(f"/api/v1/runs/{run_id}/gates/evaluate", json=body)
        assert (response.status_code, response.json()["errors"][0]["pointer"]) == (422, "/gates")


def test_an_evaluation_of_another_run_is_not_there(client, ended, launch):
    run_id = ended({"reward": noisy(0.5)}, [{"assertion": "reward >= 0.4"}])
    evaluation_id = gates_of(client, run_id).json()["evaluation"]["id"]
    for suffix in ("", ".xml", ".md"):
        assert gates_of(client, launch()["id"], suffix, evaluation_id=evaluation_id).status_code == 404


def test_judging_on_demand_stands_in_the_audit_log(client, ended, database):
    run_id = ended({"reward": noisy(0.5)}, [{"assertion": "reward >= 0.4"}])
    client.post(f"/api/v1/runs/{run_id}/gates/evaluate", json={})
    with database.transaction() as session:
        rows = session.execute(text("SELECT target, detail FROM audit_entry WHERE action = 'run.evaluate_gates'")).all()
    assert [tuple(row) for row in rows] == [(run_id, {"verdict": "passed"})]


def test_acceptance_length_of_draft_training_is_that_of_held_out_responses(client, launch, report, work):
    gate = {"assertion": "acceptance_length >= 2"}
    run_id = launch(config={"job": "draft_training", "drafter": {"kind": "eagle3"}}, gates=[gate])["id"]
    measured = Metrics(step=50, values={"draft_pretraining/held_out_acceptance_length_tokens": 2.4})
    report(run_id, measured, Finished(outcome="succeeded"))
    work()
    (result,) = gates_of(client, run_id).json()["evaluation"]["results"]
    assert (result["metric"], result["verdict"]) == (
        "draft_pretraining/held_out_acceptance_length_tokens",
        "passed",
    )
    assert (result["estimate"], result["first_step"], result["method"]) == (2.4, 50, "the only value itself")


def test_webhooks_are_told_when_a_run_is_judged(client, ended, database):
    with database.transaction() as session:
        session.execute(
            text("""INSERT INTO webhook (project_id, name, url, events, secret)
          SELECT id, 'w', 'https://hook.example/', '{gate.passed,gate.failed}', '' FROM project""")
        )
    run_id = ended({"reward": noisy(0.5)}, [{"assertion": "reward >= 0.4"}])
    client.post(f"/api/v1/runs/{run_id}/gates/evaluate", json={"gates": [{"assertion": "reward >= 0.9"}]})
    with database.transaction() as session:
        bodies = session.scalars(text("SELECT body FROM webhook_delivery ORDER BY created_at")).all()
    told = [json.loads(body) for body in bodies]
    assert [event["type"] for event in told] == ["gate.passed", "gate.failed"]
    assert (told[1]["data"]["run_id"], told[1]["data"]["gates"]["num_failed"]) == (run_id, 1)
    assert told[1]["data"]["gates"] == {
        key: value
        for key, value in gates_of(client, run_id).json()["evaluation"].items()
        if key not in {"run_id", "run_status"}
    } | {"created_at": told[1]["data"]["gates"]["created_at"]}


def test_readers_may_read_and_not_judge(make_client, ended):
    run_id = ended({"reward": noisy(0.5)}, [{"assertion": "reward >= 0.4"}])
    reader = make_client("read")
    assert [gates_of(reader, run_id, suffix).status_code for suffix in ("", ".xml", ".md")] == [200] * 3
    assert reader.post(f"/api/v1/runs/{run_id}/gates/evaluate", json={}).status_code == 403


def test_a_run_of_another_project_is_no_baseline(client, ended, launch):
    assert client.post("/api/v1/projects", json={"name": "other"}).status_code == 201
    foreign = ended({"reward": noisy(0.9)}, labels={"branch": "main"}, project="other")
    gate = {"assertion": "reward >= baseline", "baseline": f"run:{foreign}"}
    refused = client.post("/api/v1/runs", json={"name": "x", "config": CONFIG, "gates": [gate]})
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/gates/0/baseline")
    by_label = ended({"reward": noisy(0.5)}, [{**gate, "baseline": "label:branch:main"}])
    (result,) = gates_of(client, by_label).json()["evaluation"]["results"]
    assert (result["verdict"], result["baseline"]) == ("no_baseline", None)


def test_reports_of_evil_names_stay_whole(client, ended):
    evil = "</testsuite><script>alert(1)</script> | `x` [a](javascript:b)"
    run_id = ended({"reward": noisy(0.5)}, [{"assertion": "reward >= 0.9", "name": evil}], name=evil)
    document = gates_of(client, run_id, ".xml")
    assert document.headers["content-type"] == "application/xml"
    suite = ElementTree.fromstring(document.content).find("testsuite")
    assert [case.get("name") for case in suite.findall("testcase")] == ["run succeeded", evil]
    page = gates_of(client, run_id, ".md")
    assert page.headers["content-type"] == "text/markdown; charset=utf-8"
    assert "<script>" not in page.text
    assert "](javascript" not in page.text


def test_waiting_ends_with_the_verdict(client, launch, report, work):
    run_id = launch(gates=[{"assertion": "reward >= 0.9"}])["id"]
    report(run_id, *steps(reward=noisy(0.5)), Finished(outcome="succeeded"))
    pending = client.get(f"/api/v1/runs/{run_id}/wait?timeout_s=0").json()
    assert (pending["is_ended"], pending["gates_verdict"]) == (True, "pending")
    work()
    assert client.get(f"/api/v1/runs/{run_id}/wait?timeout_s=60").json()["gates_verdict"] == "failed"


def test_a_run_is_judged_once_however_often_the_work_is_done(client, launch, report, work, database):
    run_id = launch(gates=[{"assertion": "reward >= 0.4"}])["id"]
    report(run_id, *steps(reward=noisy(0.5)), Finished(outcome="succeeded"))
    work()
    with database.transaction() as session:
        session.execute(text("INSERT INTO outbox (kind, run_id, attempt) VALUES ('gates', :id, 1)"), {"id": run_id})
    work()
    assert len(gates_of(client, run_id).json()["evaluations"]) == 1
    with database.transaction() as session:
        assert session.scalar(text("SELECT count(*) FROM outbox")) == 0


def test_what_cannot_be_judged_has_failed_after_some_tries(client, launch, report, work, database, monkeypatch):
    """A mistake in the program must not keep a pipeline waiting for ever."""
    run_id = launch(gates=[{"assertion": "reward >= 0.4"}])["id"]
    report(run_id, *steps(reward=noisy(0.5)), Finished(outcome="succeeded"))

    def broken(*_):
        raise ZeroDivisionError

    monkeypatch.setattr(service, "measure", broken)
    for _ in range(6):
        work()
        assert client.get(f"/api/v1/runs/{run_id}").json()["gates_verdict"] in ("pending", "failed")
        with database.transaction() as session:
            session.execute(text("UPDATE outbox SET lock_expires_at = now() - interval '1 s'"))
    found = gates_of(client, run_id).json()
    assert found["verdict"] == "failed"
    assert "could not judge" in found["evaluation"]["results"][0]["reason"]


def test_a_stored_gate_of_a_metric_that_is_no_more_fails_by_name(client, launch, report, work, database):
    run_id = launch(gates=[{"assertion": "reward >= 0.4"}])["id"]
    with database.transaction() as session:
        session.execute(
            text("""UPDATE run SET gates = '[{"assertion": "old/metric > 1", "name": null, "baseline": null,
          "confidence": 0.95, "on_undecided": "pass", "on_no_baseline": "pass"}]'""")
        )
    report(run_id, Metrics(step=1, values={"reward/train_mean": 1.0}), Finished(outcome="succeeded"))
    work()
    found = gates_of(client, run_id).json()
    assert found["gates"][0]["assertion"] == "old/metric > 1"
    assert "found old/metric, expected a metric" in found["evaluation"]["results"][0]["reason"]
