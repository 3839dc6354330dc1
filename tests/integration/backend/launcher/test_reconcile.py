import re

import pytest

from backend.launcher.jobs import Job, JobState, NotStartedError, UnreachableError
from backend.launcher.service import reconcile


def test_a_run_that_reports_is_left_alone(running, control):
    before = control.run(running)
    control.reconcile()
    assert control.run(running) == before


def test_silence_makes_a_run_lost_and_a_word_finds_it(running, control):
    control.pass_time(running, 40)
    control.reconcile()
    run = control.run(running)
    assert run["status"] == "lost"
    assert re.fullmatch(r"Worker lost 4\d s ago\. Asking Ray\.", run["status_reason"])
    control.reconcile()
    reason = control.run(running)["status_reason"]
    assert re.fullmatch(r"No word from the worker for 4\d s\. Ray says that its job runs\.", reason)
    control.report("heartbeat", running, 1, "train", 3, 0.5)
    run = control.run(running)
    assert (run["status"], run["status_reason"], run["current_attempt"]) == ("running", "Worker is back.", 1)


def test_failed_calls_to_ray_never_end_a_run(running, control, cluster):
    cluster.problem = UnreachableError("connection refused")
    control.reconcile()
    assert control.status(running) == "running"
    control.pass_time(running, 40)
    for _ in range(5):
        control.reconcile()
    run = control.run(running)
    assert (run["status"], run["current_attempt"]) == ("lost", 1)
    assert re.fullmatch(r"Worker lost 4\d s ago\. Asking Ray: connection refused\.", run["status_reason"])


@pytest.mark.parametrize("state", [JobState.FAILED, JobState.STOPPED])
def test_a_dead_job_is_noticed_at_once_and_goes_on_from_its_checkpoint(running, control, cluster, state):
    control.report("checkpoint", running, 1, 20)
    cluster.end(f"{running}-1", state, exit_code=137 if state == JobState.FAILED else None)
    cluster.logs[f"{running}-1"] = [f"line {n}" for n in range(60)] + ["Killed"]
    control.reconcile()
    run = control.run(running)
    assert (run["status"], run["current_attempt"]) == ("dispatching", 2)
    assert f"{running}-2" in cluster.jobs
    assert [attempt["outcome"] for attempt in run["attempts"]] == ["crashed", None]
    log = control.log(running)
    assert ("ray/0", "error", "Killed") in log
    assert sum(emitter == "ray/0" for emitter, _, _ in log) == 50
    assert any("goes on from the checkpoint of step 20" in message for _, _, message in log)
    control.report("started", running, 2, 20)
    assert control.run(running)["status_reason"] == "Attempt 2 runs, resumed from step 20."


def test_a_job_that_ray_forgot_gets_a_new_attempt(running, control, cluster):
    cluster.jobs.clear()
    control.reconcile()
    assert list(cluster.jobs) == [f"{running}-2"]


def test_a_ray_that_was_shut_down_is_started_again_for_the_run(running, control, cluster):
    cluster.problem = NotStartedError("Ray has not been started on this machine")
    control.reconcile()
    assert (control.status(running), control.run(running)["current_attempt"]) == ("dispatching", 2)
    cluster.problem = None
    control.all_due()
    control.work()
    assert f"{running}-2" in cluster.jobs


def test_a_job_that_dies_before_it_reports_is_tried_again(launch, control, cluster):
    run_id = launch()["id"]
    control.work()
    cluster.end(f"{run_id}-1", exit_code=2)
    control.reconcile()
    assert (control.status(run_id), control.run(run_id)["current_attempt"]) == ("dispatching", 2)


def test_after_the_last_attempt_the_run_has_failed(launch, control, cluster):
    run_id = launch(max_attempts=2)["id"]
    control.work()
    for number in (1, 2):
        cluster.end(f"{run_id}-{number}", exit_code=1)
        control.reconcile()
    run = control.run(run_id)
    assert (run["status"], run["is_ended"], run["current_attempt"]) == ("failed", True, 2)
    assert run["status_reason"] == "The worker's process ended with exit code 1. It was the last of 2 attempts."


def test_a_job_that_ended_well_gets_time_for_its_last_events(running, control, cluster, settings):
    cluster.end(f"{running}-1", JobState.SUCCEEDED)
    control.pass_time(running, 100)
    control.reconcile()
    assert control.run(running)["status_reason"] == "The Ray job has ended well. Waiting for its last events."
    control.report("finished", running, 1, "succeeded", False, None)
    assert control.status(running) == "succeeded"


def test_without_them_it_has_failed(running, control, cluster):
    cluster.jobs[f"{running}-1"] = Job(JobState.SUCCEEDED)
    control.pass_time(running, 61)
    control.reconcile()
    run = control.run(running)
    assert (run["status"], run["current_attempt"]) == ("failed", 1)
    assert "its last events never came" in run["status_reason"]


def test_a_run_whose_job_is_still_to_be_submitted_is_not_judged(launch, control, cluster):
    run_id = launch()["id"]
    cluster.problem = UnreachableError("connection refused")
    control.work()
    cluster.problem = None
    control.reconcile()
    run = control.run(run_id)
    assert (run["status"], run["current_attempt"]) == ("dispatching", 1)


def test_a_word_that_comes_while_ray_is_asked_wins(running, control, cluster):
    control.pass_time(running, 40)
    ask = cluster.get

    def answer(submission_id):
        control.report("heartbeat", running, 1, "train", 3, None)
        return ask(submission_id)

    cluster.get = answer
    control.reconcile()
    assert control.status(running) == "running"


def test_an_end_that_comes_while_ray_is_asked_wins(running, control, cluster):
    def answer(submission_id):
        control.report("finished", running, 1, "succeeded", False, None)
        return Job(JobState.FAILED)

    cluster.get = answer
    control.reconcile()
    assert (control.status(running), control.run(running)["current_attempt"]) == ("succeeded", 1)


def test_what_a_lost_nudge_left_is_found(launch, control, cluster):
    run_id = launch()["id"]
    control.reconcile()
    assert list(cluster.jobs) == [f"{run_id}-1"]


def test_of_two_rounds_at_the_same_time_one_is_enough(control, database, settings, cluster):
    assert reconcile(database, settings, 2.5, cluster.connect)
    assert not reconcile(database, settings, 2.5, cluster.connect)


def test_old_rows_are_trimmed_and_tokens_of_ended_runs_die_after_a_while(running, control, cluster, make_client):
    token = cluster.assignment(f"{running}-1").token
    ingest = lambda: make_client().post(  # noqa: E731
        "/api/v1/ingest", json={}, headers={"Authorization": f"Bearer {token}"}
    )
    control.report("finished", running, 1, "succeeded", False, None)
    control.reconcile()
    assert ingest().status_code == 422  # still heard: its spool may hold more
    control.sql("UPDATE run SET ended_at = ended_at - interval '2 hours'")
    control.sql("UPDATE notice SET created_at = created_at - interval '2 days'")
    control.sql("UPDATE periodic_job SET started_at = started_at - interval '1 hour'")
    control.reconcile()
    assert ingest().status_code == 401
    assert control.sql("SELECT count(*) FROM notice") == [(1,)]  # the newest says where history begins
