import hashlib
import json
import threading

import pytest

from backend import queue
from backend.auth.workers.service import STARTER_LIFETIME_S
from backend.launcher import service
from backend.launcher.dispatch import dispatch
from backend.launcher.jobs import Job, JobState, Node, StartingError, UnreachableError
from backend.launcher.service import work_off
from backend.runs import repository
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


def test_the_clusters_code_and_reward_modules_go_with_every_job(launch, control, cluster):
    code = {"kind": "runtime_env", "pip": ["torch==2.11.0"]}
    control.sql(
        "UPDATE cluster SET code = CAST(:code AS jsonb), reward_modules = ARRAY['ours', 'theirs.math']",
        code=json.dumps(code),
    )
    submission_id = f"{launch()['id']}-1"
    control.work()
    sent = cluster.submissions[submission_id].runtime_env
    assert sent == {"pip": ["torch==2.11.0"], "config": {"setup_timeout_seconds": 3600}}
    assert cluster.assignment(submission_id).reward_modules == ["ours", "theirs.math"]


def test_the_workers_token_reports_for_its_run_and_does_nothing_else(launch, control, cluster, make_client):
    mine, other = launch()["id"], launch()["id"]
    control.work()
    worker = make_client()
    worker.headers["Authorization"] = f"Bearer {cluster.token(f'{mine}-1', worker)}"
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


def test_the_starter_of_a_submission_whose_answer_was_lost_still_works(launch, control, cluster, make_client):
    run_id = launch()["id"]
    cluster.is_answer_lost = True
    control.work()
    cluster.is_answer_lost = False
    control.all_due()
    control.work()
    token = cluster.token(f"{run_id}-1", make_client())
    response = make_client().post("/api/v1/ingest", json={}, headers={"Authorization": f"Bearer {token}"})
    assert response.status_code == 422


def test_tries_that_reach_nobody_make_no_tokens(launch, control, cluster):
    launch()
    cluster.problem = UnreachableError("connection refused")
    for _ in range(3):
        control.all_due()
        control.work()
    assert control.sql("SELECT count(*) FROM api_token WHERE run_id IS NOT NULL") == [(0,)]


def test_a_run_has_one_starter_and_one_token_that_last(launch, control, cluster, settings, make_client):
    """Those of an attempt before last as long as its events may take."""
    run_id = launch()["id"]
    control.work()
    cluster.token(f"{run_id}-1", make_client())
    cluster.jobs.clear()
    control.reconcile()
    control.all_due()
    control.work()
    cluster.token(f"{run_id}-2", make_client())
    left_s = "SELECT attempt, round(extract(epoch FROM expires_at - now()) / 100) FROM api_token WHERE run_id = :id"
    drain, lifetime = settings.drain_s / 100, STARTER_LIFETIME_S / 100
    left = [(1, drain), (1, drain), (2, lifetime), (2, None)]
    assert control.sql(f"{left_s} ORDER BY created_at", id=run_id) == left


def test_one_call_does_so_much_and_leaves_the_rest_to_the_next(launch, control, cluster, monkeypatch):
    control.sql("UPDATE cluster SET max_concurrent_runs = 100")
    for _ in range(3):
        launch()
    monkeypatch.setattr(service, "MAX_WORK", 2)
    assert (control.work(), control.work(), control.work()) == (2, 1, 0)


def test_the_lease_begins_anew_before_the_job_is_submitted(launch, control, cluster):
    """Asking for the job and submitting it may each take as long as Ray is given."""
    launch()
    seen = []
    cluster.on_submit = lambda: seen.extend(control.sql("SELECT lock_expires_at - now() > interval '25 s' FROM outbox"))
    ask = cluster.get

    def slow(submission_id):
        control.sql("UPDATE outbox SET lock_expires_at = now() + interval '1 second'")
        return ask(submission_id)

    cluster.get = slow
    control.work()
    assert seen == [(True,)]


def test_a_place_that_becomes_free_while_a_run_looks_for_one_is_not_missed(running, launch, control, cluster, database):
    """The waiting run has counted and holds its row; the other one ends before it has written that it waits."""
    waiting = launch()["id"]
    with database.transaction() as session:
        lease = queue.claim(session, 30)
        repository.get_locked(session, lease.run_id)
        assert queue.is_held(session, lease)
        ending = threading.Thread(
            target=control.report, args=("finished", running, 1, "succeeded", False, None), daemon=True
        )
        ending.start()
        ending.join(0.3)
        assert ending.is_alive()  # it waits for whoever looks
        queue.postpone(session, lease, 1000)
    ending.join(10)
    control.work()
    assert f"{waiting}-1" in cluster.jobs


def test_the_next_in_line_moves_up_when_the_one_before_is_stopped(running, launch, control, client):
    first, second = launch()["id"], launch()["id"]
    control.work()
    assert client.post(f"/api/v1/runs/{first}/stop").status_code == 202
    assert control.work() == 1
    assert control.run(second)["status_reason"] == "Waits for a place on cluster local: 1 of 1 taken."


def test_runs_that_are_stopped_at_once_do_not_wait_for_each_other_in_a_circle(running, launch, control, client):
    run_ids = [launch()["id"] for _ in range(8)]
    answers = []
    barrier = threading.Barrier(8)

    def stop(run_id):
        barrier.wait(10)
        answers.append(client.post(f"/api/v1/runs/{run_id}/stop").status_code)

    threads = [threading.Thread(target=stop, args=(run_id,)) for run_id in run_ids]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert answers == [202] * 8


def test_a_refused_job_fails_the_run_with_the_reason(launch, control, cluster):
    run_id = launch()["id"]
    cluster.refusal = "Ray refuses the job: no such interpreter"
    control.work()
    run = control.run(run_id)
    assert (run["status"], run["status_reason"]) == ("failed", "Ray refuses the job: no such interpreter")
    assert run["attempts"][0]["outcome"] == "failed"
    assert control.sql("SELECT count(*) FROM outbox") == [(0,)]


ON_GPUS = {"resources": {"num_nodes": 2, "gpus_per_node": 8}, "drafter": {"kind": "none"}}


def test_a_run_that_can_never_fit_fails_before_it_is_handed_over(launch, control, cluster):
    cluster.machines = [Node(4, 4)]
    run_id = launch(config=ON_GPUS)["id"]
    control.work()
    run = control.run(run_id)
    assert (run["status"], cluster.num_submits) == ("failed", 0)
    assert "The run needs 2 nodes with 8 GPUs each, and cluster local has 1 node with 4 GPUs" in run["status_reason"]
    assert control.sql("SELECT count(*) FROM api_token WHERE run_id IS NOT NULL") == [(0,)]


def test_a_run_waits_for_gpus_that_others_use_and_says_so(launch, control, cluster):
    cluster.machines = [Node(8, 8), Node(8, 0)]
    run_id = launch(config=ON_GPUS)["id"]
    control.work()
    run = control.run(run_id)
    assert (run["status"], cluster.num_submits) == ("dispatching", 0)
    assert run["status_reason"].startswith("Waits for GPUs of cluster local: the run needs 2 nodes with 8 GPUs each")
    cluster.machines = [Node(8, 8), Node(8, 8)]
    control.all_due()
    control.work()
    assert list(cluster.jobs) == [f"{run_id}-1"]


def test_what_nobody_knows_of_a_cluster_is_left_to_ray(launch, control, cluster):
    run_id = launch(config=ON_GPUS)["id"]
    control.work()
    assert list(cluster.jobs) == [f"{run_id}-1"]


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
