from backend.launcher import service
from backend.launcher.jobs import Job, JobState, NotStartedError, UnreachableError
from backend.runs import service as runs


def stop(client, run_id):
    response = client.post(f"/api/v1/runs/{run_id}/stop")
    assert response.status_code == 202, response.text
    return response.json()


def test_a_waiting_run_stops_at_once(launch, control, client, cluster):
    run = stop(client, launch()["id"])
    assert (run["status"], run["is_ended"], run["status_reason"]) == (
        "stopped",
        True,
        "Stopped by token:admin/test before it started.",
    )
    assert control.work() == 0
    assert not cluster.jobs


def test_a_running_worker_is_asked_first(running, control, client, cluster):
    run = stop(client, running)
    assert (run["status"], run["is_stop_requested"]) == ("running", True)
    assert run["status_reason"] == "Stopping: the worker finishes its stage."
    assert control.work() == 0
    assert not cluster.stopped
    control.report("finished", running, 1, "stopped", False, None)
    assert control.status(running) == "stopped"
    control.all_due()
    assert control.work() == 0


def test_after_the_grace_ray_ends_the_job(running, control, client, cluster):
    stop(client, running)
    control.all_due()
    control.work()
    run = control.run(running)
    assert cluster.stopped == [f"{running}-1"]
    assert (run["status"], run["attempts"][0]["outcome"]) == ("stopped", "stopped")


def test_a_job_that_takes_its_time_to_end_is_looked_at_again(running, control, client, cluster):
    stop(client, running)
    cluster.stop = cluster.stopped.append
    control.all_due()
    control.work()
    assert control.run(running)["status_reason"] == "Stopping: Ray ends the job."
    cluster.end(f"{running}-1", JobState.STOPPED)
    control.all_due()
    control.work()
    assert (control.status(running), len(cluster.stopped)) == ("stopped", 2)


def test_a_run_that_is_being_dispatched_is_not_submitted(launch, control, client, cluster):
    run_id = launch()["id"]
    cluster.problem = UnreachableError("connection refused")
    control.work()
    stop(client, run_id)
    cluster.problem = None
    control.all_due()
    control.work()
    assert (control.status(run_id), cluster.jobs) == ("stopped", {})


def test_while_a_dispatch_is_under_way_the_stop_waits_for_it(launch, control, client, cluster):
    run_id = launch()["id"]

    def stop_meanwhile():
        cluster.on_submit = lambda: None
        stop(client, run_id)
        assert control.work() == 1
        assert not cluster.stopped

    cluster.on_submit = stop_meanwhile
    control.work()
    control.all_due()
    control.work()
    assert (control.status(run_id), cluster.stopped) == ("stopped", [f"{run_id}-1"])


def test_an_unreachable_cluster_is_asked_again(running, control, client, cluster):
    stop(client, running)
    cluster.problem = UnreachableError("connection refused")
    control.all_due()
    control.work()
    run = control.run(running)
    assert run["status"] == "running"
    assert run["status_reason"] == "Stopping: cluster local cannot be reached: connection refused."
    cluster.problem = None
    control.all_due()
    control.work()
    assert control.status(running) == "stopped"


def test_a_silent_run_on_a_cluster_that_never_answers_ends_all_the_same(running, launch, control, client, cluster):
    waiting = launch()["id"]
    stop(client, running)
    cluster.problem = UnreachableError("connection refused")
    for _ in range(4):  # its worker still reports
        control.all_due()
        control.work()
    assert control.status(running) == "running"
    control.pass_time(running, 40)
    control.all_due()
    control.work()
    run = control.run(running)
    assert (run["status"], run["attempts"][0]["outcome"]) == ("stopped", "stopped")
    assert run["status_reason"] == (
        "Stopped at step 0. Cluster local cannot be reached: its job may still run there, and is told to end at its "
        "first report."
    )
    with control.database.transaction() as session:
        assert runs.ingest_reply(session, running) == (1, True)
    cluster.problem = None
    control.all_due()
    control.work()
    assert f"{waiting}-1" in cluster.jobs


def test_a_dispatch_that_fails_does_not_talk_over_a_stop(launch, control, client, cluster, monkeypatch):
    run_id = launch()["id"]
    monkeypatch.setattr(service, "MAX_WORK", 1)

    def stop_meanwhile():
        stop(client, run_id)
        raise UnreachableError("connection refused")

    cluster.on_submit = stop_meanwhile
    control.work()
    assert control.run(run_id)["status_reason"] == "Stopping: asking Ray."


def test_without_ray_there_is_no_job_to_stop(running, control, client, cluster):
    stop(client, running)
    cluster.problem = NotStartedError("Ray has not been started on this machine")
    control.all_due()
    control.work()
    assert control.status(running) == "stopped"


def test_stopping_twice_is_stopping_once(running, control, client):
    stop(client, running)
    stop(client, running)
    assert control.sql("SELECT count(*) FROM outbox") == [(1,)]
    control.report("finished", running, 1, "stopped", False, None)
    assert stop(client, running)["status"] == "stopped"
    assert control.sql("SELECT count(*) FROM audit_entry WHERE action = 'run.stop'") == [(1,)]


def test_what_has_ended_otherwise_cannot_be_stopped(running, control, client):
    control.report("finished", running, 1, "succeeded", False, None)
    response = client.post(f"/api/v1/runs/{running}/stop")
    assert response.status_code == 409
    assert response.json()["detail"] == "Run test has already succeeded: there is nothing to stop."


def test_a_crash_after_the_request_counts_as_stopped(running, control, client, cluster):
    stop(client, running)
    cluster.jobs[f"{running}-1"] = Job(JobState.FAILED, exit_code=1)
    control.reconcile()
    run = control.run(running)
    assert (run["status"], run["current_attempt"]) == ("stopped", 1)
