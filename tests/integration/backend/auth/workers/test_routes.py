"""A starter brings a token to report with, until one is used; whoever else has read it has nothing, or is found out."""

import threading

import pytest
from fastapi.testclient import TestClient

from backend.auth.service import issue_worker_token
from backend.auth.workers import service
from backend.openapi_examples import RESPONSES

PATH = "/api/v1/ingest/token"


def test_a_worker_exchanges_its_starter_and_reports(wire, begin, run_id, client, audited):
    answer = wire.post("/ingest/token", begin(run_id))
    assert answer.status_code == 201
    assert answer.json().keys() == RESPONSES["worker_tokens_create"].keys()
    assert wire.report(answer.json()["token"], run_id) == 200
    newest = client.get("/api/v1/audit", params={"limit": 1}).json()["items"][0]
    assert (newest["actor"], newest["action"], newest["target"]) == (f"run:{run_id}", "worker_token.issue", run_id)
    assert (newest["project"], newest["address"], newest["request_id"] is None) == ("default", "testclient", False)
    assert audited() == [("issue", {"attempt": 1, "num_replaced": 0})]


def test_only_a_starter_is_exchanged(app, wire, begin, run_id, client, make_client):
    assert make_client().post(PATH).status_code == 401
    assert client.post(PATH).status_code == 403
    token = wire.exchange(begin(run_id))[1]
    assert wire.exchange(token) == (403, None)
    browser = TestClient(app)
    code = client.post("/api/v1/login-links").json()["url"].partition("code=")[2]
    csrf = browser.post("/api/v1/session", json={"code": code}).json()["csrf_token"]
    assert browser.post(PATH, headers={"X-CSRF-Token": csrf}).status_code == 403


def test_a_starter_reports_nothing_and_reads_nothing(wire, begin, run_id):
    starter = begin(run_id)
    assert wire.report(starter, run_id) == 403
    own = {"Authorization": f"Bearer {starter}"}
    for path in ("runs", f"runs/{run_id}", f"runs/{run_id}/logs", "tokens", "audit", "openapi.json", "stream"):
        assert wire.http.get(f"/api/v1/{path}", headers=own).status_code == 403, path
    assert wire.exchange(starter)[0] == 201


def test_what_it_brings_is_good_for_its_run_and_no_later_attempt(wire, begin, launch, run_id):
    other = launch()["id"]
    begin(other)
    first = wire.exchange(begin(run_id))[1]
    assert wire.report(first, other) == 403
    second = wire.exchange(begin(run_id))[1]
    assert wire.report(first, run_id, attempt=2) == 403
    assert wire.report(first, run_id) == 200
    assert wire.report(second, run_id, attempt=2) == 200
    assert wire.report(second, run_id, attempt=1) == 200  # what the attempt before has left


def test_an_exchange_may_be_repeated_until_its_token_is_used(wire, begin, run_id, audited, warnings):
    starter = begin(run_id)
    tokens = [wire.exchange(starter)[1] for _ in range(3)]
    assert wire.report(tokens[2], run_id) == 200
    assert wire.exchange(starter) == (401, None)
    assert wire.report(tokens[2], run_id) == 200
    assert audited()[:3] == [("issue", {"attempt": 1, "num_replaced": num}) for num in (0, 1, 1)]


def test_whoever_finds_the_starter_later_has_nothing_and_is_noted_once(wire, begin, run_id, audited, warnings, client):
    starter = begin(run_id)
    wire.report(wire.exchange(starter)[1], run_id)
    for _ in range(3):
        assert wire.exchange(starter) == (401, None)
        assert wire.report(starter, run_id) == 401
    assert audited()[1:] == [("refuse", {"attempt": 1, "token": "starter"})]
    (warning,) = warnings(run_id)
    assert warning.startswith("testclient has presented the starter of attempt 1 after somebody had begun to report")
    newest = client.get("/api/v1/audit", params={"limit": 1}).json()["items"][0]
    assert (newest["actor"], newest["target"], newest["address"]) == ("stranger", run_id, "testclient")


def test_a_thief_who_was_first_loses_to_the_worker_and_is_noted(wire, begin, run_id, audited, warnings):
    starter = begin(run_id)
    stolen = wire.exchange(starter)[1]
    assert wire.report(wire.exchange(starter)[1], run_id) == 200
    assert [wire.report(stolen, run_id) for _ in range(2)] == [401, 401]
    assert audited()[2:] == [("refuse", {"attempt": 1, "token": "token"})]
    (warning,) = warnings(run_id)
    assert "a token of attempt 1 after its starter was exchanged for another one" in warning


def test_a_thief_who_has_even_reported_is_found_out_by_the_worker(wire, begin, run_id, audited, warnings):
    starter = begin(run_id)
    stolen = wire.exchange(starter)[1]
    assert wire.report(stolen, run_id) == 200
    assert wire.exchange(starter) == (401, None)
    assert audited()[1:] == [("refuse", {"attempt": 1, "token": "starter"})]
    assert "stop the run, and see who can read the cluster's jobs and logs" in warnings(run_id)[0]


def test_any_use_of_a_token_is_its_first(wire, begin, run_id):
    """Also one that is refused: whoever has it has it."""
    starter = begin(run_id)
    token = wire.exchange(starter)[1]
    assert wire.http.get("/api/v1/runs", headers={"Authorization": f"Bearer {token}"}).status_code == 403
    assert wire.exchange(starter) == (401, None)


def test_a_guess_at_a_worn_starter_says_nothing(wire, begin, run_id, audited, warnings):
    starter = begin(run_id)
    wire.report(wire.exchange(starter)[1], run_id)
    for guess in (starter[:-1], f"{starter}x", "_".join([*starter.split("_")[:2], "x"]), "fdk_00000000_x", "x", ""):
        assert wire.exchange(guess) == (401, None)
    assert (len(audited()), warnings(run_id)) == (1, [])


def test_a_starter_ends_by_time(wire, begin, run_id, sql, audited):
    starter = begin(run_id)
    sql("UPDATE api_token SET expires_at = now() - interval '1 second' WHERE run_id IS NOT NULL")
    assert wire.exchange(starter) == (401, None)
    assert audited() == []


def test_a_worker_that_is_waited_for_comes_in_time_however_late(wire, begin, run_id, sql, database):
    """Ray may have the job wait for longer than a starter lasts by itself, and the service may be away as long."""
    old, starter = begin(run_id), begin(run_id)
    sql("UPDATE api_token SET expires_at = now() - interval '1 day' WHERE run_id IS NOT NULL")
    with database.transaction() as session:
        service.trim(session, ended_for_s=0)
    assert wire.exchange(starter)[0] == 201
    assert wire.exchange(old) == (401, None)


@pytest.mark.parametrize("status", ["running", "lost", "succeeded", "stopped"])
def test_nobody_waits_for_a_worker_that_has_reported_or_has_ended(wire, begin, run_id, sql, database, status):
    starter = begin(run_id)
    sql("UPDATE run SET status = :status", status=status)
    sql("UPDATE api_token SET expires_at = now() - interval '1 second' WHERE run_id IS NOT NULL")
    with database.transaction() as session:
        service.trim(session, ended_for_s=1000)
    assert wire.exchange(starter) == (401, None)


def test_the_starter_of_an_attempt_before_brings_no_more_than_that_attempt_has(wire, begin, run_id, sql):
    """A worker that comes late is told that it was replaced; it takes nothing from the one in its place."""
    old, new = begin(run_id), begin(run_id)
    late = wire.exchange(old)[1]
    rows = sql("SELECT round(extract(epoch FROM expires_at - now()) / 100) FROM api_token WHERE scopes = '{ingest}'")
    assert rows == [(36,)]
    assert wire.report(late, run_id) == 200
    assert wire.exchange(old) == (401, None)
    assert wire.report(wire.exchange(new)[1], run_id, attempt=2) == 200


def test_a_worker_of_an_attempt_before_that_comes_late_still_hears_that_it_is_replaced(wire, begin, run_id):
    old, new = begin(run_id), begin(run_id)
    assert wire.report(wire.exchange(new)[1], run_id, attempt=2) == 200
    late = wire.exchange(old)[1]
    assert wire.send(late, run_id, attempt=1).json()["current_attempt"] == 2
    assert wire.report(late, run_id, attempt=2) == 403


def test_other_runs_starters_are_left_alone(wire, begin, launch, run_id):
    other = launch()["id"]
    mine, theirs = begin(run_id), begin(other)
    kept = wire.exchange(theirs)[1]
    assert wire.report(wire.exchange(mine)[1], run_id) == 200
    assert wire.report(kept, other) == 200


def test_a_token_of_the_version_before_goes_on_reporting(wire, begin, run_id, database):
    """It came with the assignment, and is of no attempt."""
    begin(run_id)
    with database.transaction() as session:
        token = issue_worker_token(session, run_id)
    begin(run_id)
    assert [wire.report(token, run_id, attempt) for attempt in (1, 2, 2)] == [200, 200, 200]


def test_its_body_is_limited_and_its_requests_are_counted(wire, begin, run_id):
    starter = begin(run_id)
    huge = wire.post("/ingest/token", starter, json={"x": "x" * 3 * 2**20})
    assert huge.status_code == 413
    assert wire.post("/ingest/token", starter).headers["RateLimit-Policy"].startswith('"caller"')


def together(*calls):
    """Their results, all begun at the same time."""
    barrier, results = threading.Barrier(len(calls)), [None] * len(calls)

    def call(number):
        barrier.wait(10)
        results[number] = calls[number]()

    threads = [threading.Thread(target=call, args=(number,)) for number in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return results


def test_of_tokens_that_are_exchanged_for_at_once_one_works(wire, begin, run_id):
    starter = begin(run_id)
    answers = together(*[lambda: wire.exchange(starter)] * 6)
    assert [status for status, _ in answers] == [201] * 6
    assert sorted(wire.report(token, run_id) for _, token in answers) == [200, *[401] * 5]
    assert wire.exchange(starter) == (401, None)


def test_a_first_report_and_an_exchange_at_once_leave_one_token(wire, launch, begin, audited):
    outcomes = set()
    for _ in range(12):
        run_id = launch()["id"]
        starter = begin(run_id)
        first = wire.exchange(starter)[1]
        reported, (status, second) = together(lambda: wire.report(first, run_id), lambda: wire.exchange(starter))  # noqa: B023
        outcomes.add((reported, status))
        if second:
            assert wire.report(second, run_id) == 200
            assert wire.report(first, run_id) == 401
        else:
            assert wire.report(first, run_id) == 200
        assert wire.exchange(starter) == (401, None)
    refused = [detail["token"] for action, detail in audited() if action == "refuse"]
    assert refused.count("starter") == 12
    assert outcomes <= {(200, 401), (401, 201)}
