"""A cluster in memory that follows the launcher's own protocol: rules are under test here, and Ray in test_ray.py."""

import json
from contextlib import nullcontext
from uuid import UUID

import pytest
from sqlalchemy import text

from backend.launcher.jobs import Job, JobState, RefusedError, UnreachableError
from backend.launcher.service import reconcile, work_off
from backend.runs import service as runs
from contract.telemetry.events import ASSIGNMENT_VARIABLE, WorkerAssignment


class Cluster:
    """Jobs by submission id; its answers can be taken away and be made to go wrong."""

    def __init__(self):
        self.jobs, self.submissions, self.stopped, self.logs = {}, {}, [], {}
        self.problem, self.refusal, self.num_submits = None, None, 0
        self.is_answer_lost = False
        self.log_problem, self.num_asked = None, 0
        self.machines = None
        self.on_submit = lambda: None

    def connect(self, target, wake):
        self.num_asked += 1
        self._answer()
        return nullcontext(self)

    def _answer(self):
        if self.problem:
            raise self.problem

    def submit(self, submission):
        self.on_submit()
        self.num_submits += 1
        if self.refusal:
            raise RefusedError(self.refusal)
        if submission.submission_id not in self.jobs:
            self.jobs[submission.submission_id] = Job(JobState.RUNNING)
            self.submissions[submission.submission_id] = submission
        if self.is_answer_lost:
            raise UnreachableError("the answer was lost")

    def get(self, submission_id):
        return self.jobs.get(submission_id, Job(JobState.MISSING))

    def stop(self, submission_id):
        self.stopped.append(submission_id)
        if submission_id in self.jobs:
            self.jobs[submission_id] = Job(JobState.STOPPED)

    def nodes(self):
        return self.machines

    def log_tail(self, submission_id, num_lines):
        if self.log_problem:
            raise self.log_problem
        return self.logs.get(submission_id, [])[-num_lines:]

    def end(self, submission_id, state=JobState.FAILED, **fields):
        self.jobs[submission_id] = Job(state, **fields)

    def assignment(self, submission_id):
        environment = self.submissions[submission_id].environment
        return WorkerAssignment.model_validate(json.loads(environment[ASSIGNMENT_VARIABLE]))

    def token(self, submission_id, client):
        """What the job's worker exchanges its starter for."""
        starter = {"Authorization": f"Bearer {self.assignment(submission_id).starter}"}
        return client.post("/api/v1/ingest/token", headers=starter).raise_for_status().json()["token"]


@pytest.fixture
def cluster():
    return Cluster()


class Control:
    """The control plane's hands: works off what is due, reconciles, and lets time pass for a run."""

    def __init__(self, database, settings, cluster, client):
        self.database, self.settings, self.cluster, self.client = database, settings, cluster, client

    def work(self):
        return work_off(self.database, self.settings, self.cluster.connect)

    def reconcile(self):
        assert reconcile(self.database, self.settings, 0, self.cluster.connect)

    def run(self, run_id):
        return self.client.get(f"/api/v1/runs/{run_id}").json()

    def status(self, run_id):
        return self.run(run_id)["status"]

    def log(self, run_id):
        items = self.client.get(f"/api/v1/runs/{run_id}/logs").json()["items"]
        return [(item["emitter"], item["level"], item["message"]) for item in items]

    def sql(self, statement, **parameters):
        with self.database.transaction() as session:
            result = session.execute(text(statement), parameters)
            return result.all() if result.returns_rows else result.rowcount

    def pass_time(self, run_id, seconds):
        self.sql(
            "UPDATE run SET last_heartbeat_at = last_heartbeat_at - make_interval(secs => :s) WHERE id = :id",
            s=seconds,
            id=run_id,
        )

    def all_due(self):
        self.sql("UPDATE outbox SET due_at = now()")

    def report(self, verb, run_id, *arguments):
        with self.database.transaction() as session:
            return getattr(runs, f"record_{verb}")(session, UUID(run_id), *arguments)


@pytest.fixture
def control(database, settings, cluster, client):
    return Control(database, settings, cluster, client)


@pytest.fixture
def running(launch, control):
    """A run whose first attempt reports."""
    run_id = launch()["id"]
    control.work()
    control.report("started", run_id, 1, None)
    return run_id
