import hashlib
import json
import threading

import pytest

from backend import queue
from backend.launcher.dispatch import dispatch
from backend.launcher.jobs import Job, JobState, StartingError, UnreachableError
from backend.launcher.service import work_off
from contract.config import RunConfig


def test_a_launched_run_becomes_a_job_with_all_its_worker_needs(launch, control, cluster, settings):
    run = launch(name="first")
    control.work()
    submission_id = f"{run['id']}-1"
    submission, assignment = cluster.submissions[submission_id], cluster.assignment(submission_id)
    assert submission.entrypoint == f"{settings.cluster_python} -m workers.main"
    assert submission.metadata == {"run": run["id"], "name": "first", "attempt": "1"}
    assert (str(assignment.run_id), assignment.attempt, assignment.run_name) == (run["id"], 1, "first")
    assert assignment.storage_dir == f"{settings.home}/storage/runs/{run['id']}"
    assert assignment.cache_dir == f"{settings.home}/storage/cache"
    assert assignment.api_url == "http://127.0.0.1:8600"
    config = RunConfig.model_validate_json(assignment.config_json)
    assert config.sha256() == assignment.config_sha256 == run["config_sha256"]
    now = control.run(run["id"])
    assert (now["status"], now["status_reason"]) == (
        "dispatching",
        "Ray has the job. Waiting for its worker to report.",
    )
    assert [(a["number"], a["submission_id"], a["outcome"]) for a in now["attempts"]] == [(1, submission_id, None)]
    assert control.work() == 0


def test_the_workers_token_reports_for_its_run_and_does_nothing_else(launch, control, cluster, make_client):
    mine, other = launch()["id"], launch()["id"]
    control.work()
    worker = make_client()
    worker.headers["Authorization"] = f"Bearer {cluster.assignment(f'{mine}-1').token}"
    event = {"seq": 1, "emitter": "driver/0", "attempt": 1, "time": "2026-01-01T00:00:00Z"}
    beat = {"kind": "heartbeat", "stage": "train", "step": 3, "stage_progress_fraction": None}
    send = lambda run_id: worker.post(  # noqa: E731
        "/api/v1/ingest", json={"events": [{**event, "run_id": run_id, "body": beat}]}
    )
    assert send(mine).json() == {
        "acknowledged": [{"attempt": 1, "emitter": "driver/0", "seq": 1}],
        "current_attempt": 1,
        "is_stop_requested": False,
    }
    assert send(other).status_code == 403
    assert worker.get(f"/api/v1/runs/{mine}").status_code == 403
    assert worker.post(f"/api/v1/runs/{mine}/stop").status_code == 403
    assert (control.run(mine)["step"], control.status(mine)) == (3, "running")


def test_runs_wait_for_a_place_in_the_order_of_their_launch(launch, control, cluster):
    first, second, third = (launch()["id"] for _ in range(3))
    control.work()
    assert list(cluster.jobs) == [f"{first}-1"]
    waits = control.run(third)
    assert waits["status"] == "queued"
    assert waits["status_reason"] == "Waits for a place on cluster local: 1 of 1 taken, 1 ahead in the queue."
    control.report("finished", first, 1, "succeeded", False, None)
    control.work()
    assert list(cluster.jobs) == [f"{first}-1", f"{second}-1"]
    assert control.status(third) == "queued"


def test_a_lost_run_keeps_its_place(running, launch, control, cluster):
    control.sql("UPDATE run SET status = 'lost' WHERE id = :id", id=running)
    launch()
    control.work()
    assert len(cluster.jobs) == 1


def test_as_many_runs_go_on_as_the_cluster_carries(launch, control, cluster):
    control.sql("UPDATE cluster SET max_concurrent_runs = 2")
    for _ in range(3):
        launch()
    control.work()
    assert len(cluster.jobs) == 2


def test_an_unreachable_cluster_is_tried_again_and_no_attempt_is_lost(launch, control, cluster):
    run_id = launch()["id"]
    cluster.problem = UnreachableError("connection refused")
    control.work()
    waits = control.run(run_id)
    assert waits["status"] == "dispatching"
    assert waits["status_reason"] == "Cluster local cannot be reached: connection refused. Trying again."
    cluster.problem = None
    control.all_due()
    control.work()
    assert (list(cluster.jobs), control.run(run_id)["current_attempt"]) == ([f"{run_id}-1"], 1)


def test_while_ray_starts_the_run_says_so(launch, control, cluster):
    run_id = launch()["id"]
    cluster.problem = StartingError("Starting Ray on this machine.")
    control.work()
    assert control.run(run_id)["status_reason"] == "Starting Ray on this machine."


def test_a_lost_answer_makes_no_second_job(launch, control, cluster):
    run_id = launch()["id"]
    cluster.is_answer_lost = True
    control.work()
    cluster.is_answer_lost = False
    control.all_due()
    control.work()
    assert (cluster.num_submits, list(cluster.jobs)) == (1, [f"{run_id}-1"])
    assert control.run(run_id)["status_reason"].startswith("Ray has the job.")


def test_the_token_of_a_submission_whose_answer_was_lost_still_works(launch, control, cluster, make_client):
    run_id = launch()["id"]
    cluster.is_answer_lost = True
    control.work()
    token = cluster.assignment(f"{run_id}-1").token
    cluster.is_answer_lost = False
    control.all_due()
    control.work()
    response = make_client().post("/api/v1/ingest", json={}, headers={"Authorization": f"Bearer {token}"})
    assert response.status_code == 422


def test_a_refused_job_fails_the_run_with_the_reason(launch, control, cluster):
    run_id = launch()["id"]
    cluster.refusal = "Ray refuses the job: no such interpreter"
    control.work()
    run = control.run(run_id)
    assert (run["status"], run["status_reason"]) == ("failed", "Ray refuses the job: no such interpreter")
    assert run["attempts"][0]["outcome"] == "failed"
    assert control.sql("SELECT count(*) FROM outbox") == [(0,)]


def test_who_has_lost_the_lease_changes_nothing(launch, control, cluster, database, settings):
    """The first holder is slow: its lease expires while it submits, and a second one does the work."""
    run_id = launch()["id"]
    with database.transaction() as session:
        slow = queue.claim(session, settings.lease_s)

    def overtake():
        cluster.on_submit = lambda: None
        control.sql("UPDATE outbox SET lock_expires_at = now() - interval '1 second'")
        assert control.work() == 1

    cluster.on_submit = overtake
    before = len(control.log(run_id))
    dispatch(database, settings, cluster.connect, slow)
    submitted = [line for line in control.log(run_id)[before:] if "is submitted" in line[2]]
    assert (len(submitted), len(cluster.jobs), control.run(run_id)["current_attempt"]) == (1, 1, 1)


def test_a_stop_while_the_job_is_being_submitted_leaves_no_stray_job(launch, control, cluster, client):
    run_id = launch()["id"]
    cluster.on_submit = lambda: control.sql(
        "UPDATE run SET status = 'stopped', ended_at = now() WHERE id = :id", id=run_id
    )
    control.work()
    assert cluster.stopped == [f"{run_id}-1"]
    assert control.status(run_id) == "stopped"


def test_two_workers_share_the_work_and_start_each_job_once(launch, control, cluster, database, settings):
    control.sql("UPDATE cluster SET max_concurrent_runs = 100")
    run_ids = [launch()["id"] for _ in range(12)]
    barrier = threading.Barrier(2)

    def work():
        barrier.wait(10)
        work_off(database, settings, cluster.connect)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert (cluster.num_submits, sorted(cluster.jobs)) == (12, sorted(f"{run_id}-1" for run_id in run_ids))
    assert control.sql("SELECT count(*) FROM outbox") == [(0,)]


def test_two_workers_never_take_the_same_place(launch, control, cluster, database, settings):
    run_ids = [launch()["id"] for _ in range(6)]
    barrier = threading.Barrier(2)

    def work():
        barrier.wait(10)
        work_off(database, settings, cluster.connect)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(cluster.jobs) <= 1
    control.all_due()
    control.work()
    assert list(cluster.jobs) == [f"{run_ids[0]}-1"]


def test_one_bad_row_does_not_hold_up_the_others(launch, control, cluster, caplog):
    control.sql("UPDATE cluster SET max_concurrent_runs = 2")
    first, second = launch()["id"], launch()["id"]

    def fail_once():
        cluster.on_submit = lambda: None
        raise ZeroDivisionError

    cluster.on_submit = fail_once
    control.work()
    assert list(cluster.jobs) == [f"{second}-1"]
    assert "work failed" in caplog.text
    control.sql("UPDATE outbox SET lock_expires_at = now()")
    control.work()
    assert f"{first}-1" in cluster.jobs


@pytest.mark.parametrize("state", [JobState.RUNNING, JobState.SUCCEEDED, JobState.FAILED])
def test_a_job_that_exists_is_not_submitted_over(launch, control, cluster, state):
    run_id = launch()["id"]
    cluster.jobs[f"{run_id}-1"] = Job(state)
    control.work()
    assert cluster.jobs[f"{run_id}-1"] == Job(state)


def test_the_digest_is_that_of_the_canonical_json(launch):
    run = launch()
    canonical = json.dumps(run["config"], sort_keys=True, separators=(",", ":"))
    assert hashlib.sha256(canonical.encode()).hexdigest() == run["config_sha256"]
