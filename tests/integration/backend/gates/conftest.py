"""Runs whose workers have reported and gone."""

import random
from datetime import UTC, datetime
from uuid import UUID

import pytest

from backend.launcher.jobs import UnreachableError
from backend.launcher.service import work_off
from backend.runs import attempts, repository
from backend.telemetry.ingest import ingest
from contract.telemetry.events import Event, Finished, IngestRequest, Metrics, Started


@pytest.fixture
def report(database):
    """report(run_id, *bodies, attempt=1): the run's worker says these; the attempt begins with the first."""
    seqs = {}

    def report(run_id, *bodies, attempt=1):
        run_id = UUID(str(run_id))
        with database.transaction() as session:
            run = repository.get_locked(session, run_id)
            if run.current_attempt < attempt:
                attempts.begin(session, run, "Handing it over.")
                bodies = (Started(host="h", versions={}), *bodies)
            first = seqs.get((run_id, attempt), 0) + 1
            now = datetime.now(UTC)
            events = [
                Event(run_id=run_id, attempt=attempt, emitter="driver/0", seq=seq, time=now, body=body)
                for seq, body in enumerate(bodies, first)
            ]
            seqs[run_id, attempt] = events[-1].seq
            ingest(session, IngestRequest(events=events), run_id)

    return report


@pytest.fixture
def work(database, settings):
    """Does what is due; there is no cluster to reach."""

    def connect(target, wake):
        raise UnreachableError("there is none")

    return lambda: work_off(database, settings, connect)


def steps(**series):
    """One event for each step: steps(reward=[0.1, 0.2]) under the catalogue's names."""
    names = {
        "reward": "reward/train_mean",
        "length": "rollout/acceptance_length_tokens",
        "rounds": "rollout/num_drafts",
        "speedup": "speedup/generation_ratio",
        "time": "time/step_s",
    }
    num_steps = max(len(values) for values in series.values())
    for index in range(num_steps):
        values = {
            names[name]: values[index]
            for name, values in series.items()
            if len(values) > index and values[index] is not None
        }
        yield Metrics(step=index + 1, values=values)


@pytest.fixture
def ended(launch, report, work):
    """ended(gates=[...], series={...}, outcome="succeeded", **fields): the id of a run that ended."""

    def ended(series, gates=(), outcome="succeeded", **fields):
        run_id = launch(gates=list(gates), **fields)["id"]
        report(run_id, *steps(**series), Finished(outcome=outcome, error="It broke." if outcome == "failed" else None))
        work()
        return run_id

    return ended


def noisy(centre, n=40, spread=0.05, seed=1):
    generator = random.Random(seed)
    return [centre + spread * generator.gauss(0, 1) for _ in range(n)]
