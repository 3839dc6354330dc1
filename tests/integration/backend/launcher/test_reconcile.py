import re

import pytest

from backend.launcher.jobs import Job, JobState, NotStartedError, SilentError, UnreachableError
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
    control.report("checkpoint", running, 1, 20, "/checkpoints")
    cluster.end(f"{running}-1", state, exit_code=137 if state == JobState.FAILED else None)
    cluster.logs[f"{running}-1"] = [f"line {n}" for n in range(60)] + ["Killed"]
    control.reconcile()
    run = control.run(running)
    assert (run["status"], run["current_attempt"]) == ("dispatching", 2)
    assert [attempt["outcome"] for attempt in run["attempts"]] == ["crashed", None]
    log = control.log(running)
    assert ("ray/0", "error", "Killed") in log
    assert sum(emitter == "ray/0" for emitter, _, _ in log) == 50
    assert any("goes on from the checkpoint of step 20" in message for _, _, message in log)
    control.report("started", running, 2, 20)
    assert control.run(running)["status_reason"] == "Attempt 2 runs, resumed from step 20."


def test_a_log_that_cannot_be_read_does_not_keep_the_dead_alive(running, launch, control, cluster):
    """The node is gone, and the log with it: what Ray knows of the job counts."""
    control.sql("UPDATE cluster SET max_concurrent_runs = 2")
    younger = launch()["id"]
    control.work()
    cluster.end(f"{running}-1", exit_code=1)
    cluster.end(f"{younger}-1", exit_code=1)
    cluster.log_problem = SilentError("the job server answers 500")
    control.reconcile()
    assert [control.run(run_id)["current_attempt"] for run_id in (running, younger)] == [2, 2]


def test_the_log_is_read_only_when_the_job_is_to_be_buried(running, control, cluster):
    cluster.log_problem = AssertionError("nobody needs the log")
    cluster.end(f"{running}-1", JobState.SUCCEEDED)
    control.reconcile()
    assert control.run(running)["status_reason"] == "The Ray job has ended well. Waiting for its last events."


def test_one_run_that_cannot_be_judged_does_not_keep_the_others_waiting(running, launch, control, cluster, caplog):
    control.sql("UPDATE cluster SET max_concurrent_runs = 2")
    younger = launch()["id"]
    control.work()
    ask = cluster.get

    def answer(submission_id):
        if submission_id == f"{running}-1":
            raise ZeroDivisionError
        return ask(submission_id)

    cluster.get = answer
    cluster.end(f"{younger}-1", exit_code=1)
    control.reconcile()
    assert [control.run(run_id)["current_attempt"] for run_id in (running, younger)] == [1, 2]
    assert "looking at a run failed" in caplog.text


def test_a_cluster_that_gives_no_answer_is_asked_once_a_round(running, launch, control, cluster):
    control.sql("UPDATE cluster SET max_concurrent_runs = 3")
    for _ in range(2):
        launch()
    cluster.problem, cluster.num_asked = SilentError("no answer"), 0
    control.reconcile()
    assert cluster.num_asked == 1
    control.reconcile()
    assert cluster.num_asked == 2


def test_a_job_that_ray_forgot_gets_a_new_attempt(running, control, cluster):
    cluster.jobs.clear()
    control.reconcile()
    control.all_due()
    control.work()
    assert list(cluster.jobs) == [f"{running}-2"]


def test_the_next_attempt_waits_the_longer_the_more_came_to_nothing(running, control, cluster):
    waits = []
    for number in range(1, 6):
        cluster.end(f"{running}-{number}", exit_code=1)
        if number == 4:
            control.report("checkpoint", running, number, 7, "/checkpoints")
        control.sql("UPDATE run SET max_attempts = 20")
        control.reconcile()
        assert control.work() == 0
        waits += control.sql("SELECT round(extract(epoch FROM due_at - now()))::int FROM outbox")[0]
        control.all_due()
        control.work()
    expected = [5, 30, 120, 5, 5]
    assert all(abs(wait - due) <= 2 for wait, due in zip(waits, expected, strict=True)), waits


def test_attempts_that_brought_a_checkpoint_do_not_count(launch, control, cluster):
    run_id = launch(max_attempts=1)["id"]
    control.work()
    for number in range(1, 5):
        control.report("started", run_id, number, None)
        control.report("checkpoint", run_id, number, 10 * number, "/checkpoints")
        cluster.end(f"{run_id}-{number}", exit_code=1)
        control.reconcile()
        control.all_due()
        control.work()
    run = control.run(run_id)
    assert (run["status"], run["current_attempt"]) == ("dispatching", 5)
    assert [attempt["last_checkpoint_step"] for attempt in run["attempts"]] == [10, 20, 30, 40, None]
    control.report("checkpoint", run_id, 5, 40, "/checkpoints")  # which is not new
    cluster.end(f"{run_id}-5", exit_code=1)
    control.reconcile()
    assert control.status(run_id) == "failed"


@pytest.mark.parametrize(
    "last_word", [None, ("failed", True, "Rollout engine 0's process died."), ("stopped", False, None)]
)
def test_a_run_outlives_any_number_of_shutdowns_of_this_machines_ray(launch, control, cluster, last_word):
    """As at `foredeck down` and `foredeck up`: what its worker still says in its fall is nothing to count."""
    run_id = launch(max_attempts=1)["id"]
    control.work()
    for number in range(1, 6):
        control.report("started", run_id, number, None)
        if last_word:
            control.report("finished", run_id, number, *last_word)
        cluster.jobs.clear()
        cluster.problem = NotStartedError("Ray has not been started on this machine")
        control.reconcile()
        cluster.problem = None
        control.all_due()
        control.work()
        assert f"{run_id}-{number + 1}" in cluster.jobs
    assert {attempt["outcome"] for attempt in control.run(run_id)["attempts"][:-1]} == {"stopped"}


def test_a_worker_that_the_cluster_ends_is_followed_by_an_attempt(launch, control, cluster):
    run_id = launch(max_attempts=1)["id"]
    control.work()
    control.report("started", run_id, 1, None)
    control.report("finished", run_id, 1, "stopped", False, None)
    run = control.run(run_id)
    assert (run["status"], run["status_reason"]) == (
        "running",
        "The cluster asked the worker to end. A new attempt follows.",
    )
    control.reconcile()
    assert control.run(run_id)["current_attempt"] == 1  # its job still goes on
    cluster.end(f"{run_id}-1", JobState.SUCCEEDED)
    control.reconcile()
    run = control.run(run_id)
    assert (run["status"], run["current_attempt"], run["attempts"][0]["outcome"]) == ("dispatching", 2, "stopped")


def test_a_job_that_does_not_end_after_its_last_word_is_ended(running, control, cluster):
    control.report("finished", running, 1, "failed", True, "an actor was lost")
    control.pass_time(running, 40)
    control.reconcile()
    assert (cluster.stopped, control.run(running)["current_attempt"]) == ([f"{running}-1"], 1)
    control.reconcile()
    run = control.run(running)
    assert (run["current_attempt"], run["attempts"][0]["outcome"]) == (2, "failed")


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
        control.all_due()
        control.work()
    run = control.run(run_id)
    assert (run["status"], run["is_ended"], run["current_attempt"]) == ("failed", True, 2)
    assert run["status_reason"] == (
        "The worker's process ended with exit code 1. It was the last of 2 attempts without a new checkpoint."
    )


def test_a_job_that_ended_well_gets_time_for_its_last_events(running, control, cluster, settings):
    cluster.end(f"{running}-1", JobState.SUCCEEDED)
    control.pass_time(running, 100)
    control.reconcile()
    assert control.run(running)["status_reason"] == "The Ray job has ended well. Waiting for its last events."
    control.report("finished", running, 1, "succeeded", False, None)
    assert control.status(running) == "succeeded"


def test_without_them_a_new_attempt_delivers_what_is_left(running, control, cluster):
    """Whoever was away for long, counts from the moment of seeing it."""
    cluster.jobs[f"{running}-1"] = Job(JobState.SUCCEEDED)
    control.pass_time(running, 10_000)
    control.reconcile()
    control.reconcile()
    assert control.run(running)["current_attempt"] == 1
    control.sql("UPDATE attempt SET ended_at = ended_at - interval '61 seconds'")
    control.reconcile()
    run = control.run(running)
    assert (run["status"], run["current_attempt"]) == ("dispatching", 2)
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
    token = cluster.token(f"{running}-1", make_client())
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
