import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.launcher.jobs import GOING, Job, JobState
from backend.launcher.verdict import Action, Look, judge
from backend.runs.state import LIVE, Status


def look(status=Status.RUNNING, silent_s=1.0, job=None, problem="", has_last_word=False, ended_s=None):
    return Look(
        status=status,
        silent_s=silent_s,
        job=job,
        problem=problem,
        has_last_word=has_last_word,
        ended_s=ended_s,
        heartbeat_timeout_s=30,
        finish_grace_s=60,
        api_url="http://api",
    )


FRESH, SILENT = 1.0, 40.0


@pytest.mark.parametrize(
    ("status", "silent_s", "state", "action"),
    [
        (Status.RUNNING, FRESH, JobState.RUNNING, Action.KEEP),
        (Status.RUNNING, SILENT, JobState.RUNNING, Action.LOSE),
        (Status.RUNNING, SILENT, JobState.PENDING, Action.LOSE),
        (Status.LOST, SILENT, JobState.RUNNING, Action.KEEP),
        (Status.LOST, FRESH, JobState.RUNNING, Action.FOUND),
        (Status.DISPATCHING, FRESH, JobState.PENDING, Action.KEEP),
        (Status.DISPATCHING, SILENT, JobState.RUNNING, Action.KEEP),
        *((status, FRESH, JobState.FAILED, Action.BURY) for status in sorted(LIVE)),
        *((status, SILENT, JobState.STOPPED, Action.BURY) for status in sorted(LIVE)),
        *((status, FRESH, JobState.MISSING, Action.BURY) for status in sorted(LIVE)),
        *((status, FRESH, JobState.GONE, Action.RESUME) for status in sorted(LIVE)),
    ],
)
def test_what_follows(status, silent_s, state, action):
    assert judge(look(status, silent_s, Job(state))).action is action


def test_the_worker_that_never_reports_is_explained():
    reason = judge(look(Status.DISPATCHING, SILENT, Job(JobState.RUNNING))).reason
    assert reason == "The Ray job runs, but its worker has not reached http://api for 40 s."


@pytest.mark.parametrize(
    ("ended_s", "action"), [(None, Action.AWAIT), (0, Action.AWAIT), (60, Action.AWAIT), (61, Action.BURY)]
)
def test_a_job_that_ended_well_has_a_grace_from_when_that_was_first_seen(ended_s, action):
    assert judge(look(Status.RUNNING, 1000, Job(JobState.SUCCEEDED), ended_s=ended_s)).action is action


@pytest.mark.parametrize(
    ("silent_s", "state", "action"),
    [
        (FRESH, JobState.RUNNING, Action.KEEP),
        (SILENT, JobState.RUNNING, Action.END_JOB),
        (FRESH, JobState.SUCCEEDED, Action.BURY),
        (FRESH, JobState.FAILED, Action.BURY),
        (FRESH, JobState.GONE, Action.RESUME),
    ],
)
def test_after_its_last_word_a_job_has_to_end(silent_s, state, action):
    assert judge(look(Status.RUNNING, silent_s, Job(state), has_last_word=True)).action is action


@given(st.sampled_from(sorted(LIVE)), st.floats(0, 1e9))
def test_without_an_answer_nothing_ever_ends(status, silent_s):
    verdict = judge(look(status, silent_s, None, "connection refused"))
    assert verdict.action in {Action.KEEP, Action.LOSE}
    assert (verdict.action is Action.LOSE) == (status is Status.RUNNING and silent_s > 30)


@given(st.sampled_from(sorted(LIVE)), st.floats(0, 1e9), st.sampled_from(sorted(GOING)))
def test_a_job_that_goes_on_is_never_buried(status, silent_s, state):
    assert judge(look(status, silent_s, Job(state))).action in {Action.KEEP, Action.LOSE, Action.FOUND}


@pytest.mark.parametrize(
    ("job", "reason"),
    [
        (Job(JobState.FAILED, exit_code=-9), "The worker's process was killed (signal 9)."),
        (Job(JobState.FAILED, exit_code=2), "The worker's process ended with exit code 2."),
        (Job(JobState.FAILED, "no such node"), "The Ray job failed: no such node."),
        (Job(JobState.FAILED, "It ended."), "The Ray job failed: It ended."),
        (Job(JobState.MISSING), "Ray does not know the job any more: it was restarted."),
    ],
)
def test_the_cause_of_death_in_words(job, reason):
    assert judge(look(job=job)).reason == reason
