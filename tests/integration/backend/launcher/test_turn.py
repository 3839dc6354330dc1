"""The queue of a cluster: its order, its limits, and that nobody is forgotten in it."""

import random
import threading
from collections import Counter

import pytest

from backend import queue
from backend.launcher.service import work_off
from backend.runs import attempts, repository
from backend.runs.state import Status, transition

GRID = {"name": "grid", "config": {"drafter": {"kind": "none"}}, "axes": {"seed": list(range(4))}}


@pytest.fixture
def owned(launch, control):
    """Launches a run for a user in a project, each made when first named."""

    def owned(user="ann", project="default", **fields):
        control.sql("INSERT INTO user_account (name) VALUES (:name) ON CONFLICT DO NOTHING", name=user)
        control.sql("INSERT INTO project (name) VALUES (:name) ON CONFLICT DO NOTHING", name=project)
        run_id = launch(project=project, **fields)["id"]
        whose = "UPDATE run SET created_by_id = (SELECT id FROM user_account WHERE name = :user) WHERE id = :id"
        control.sql(whose, user=user, id=run_id)
        return run_id

    return owned


@pytest.fixture
def limits(control):
    def limits(places, **more):
        control.sql("UPDATE cluster SET max_concurrent_runs = :places", places=places)
        for column, value in more.items():
            control.sql(f"UPDATE cluster SET max_concurrent_runs_{column} = :value", value=value)

    return limits


def begun(cluster):
    return [submission_id[:36] for submission_id in cluster.jobs]


def succeed(control, run_id):
    control.report("finished", run_id, 1, "succeeded", False, None)
    control.work()


def test_a_higher_priority_has_its_turn_first_and_equal_ones_in_the_order_of_their_launch(launch, control, cluster):
    runs = {name: launch(priority=priority)["id"] for name, priority in zip("abcd", (0, -5, 3, 3), strict=True)}
    for name in "cdab":
        control.work()
        assert begun(cluster)[-1] == runs[name]
        control.report("finished", runs[name], 1, "succeeded", False, None)


def test_each_level_is_worth_ten_minutes_of_waiting(launch, control, cluster):
    low, high = launch(priority=-2)["id"], launch()["id"]
    control.sql("UPDATE run SET created_at = created_at - interval '21 minutes' WHERE id = :id", id=low)
    assert control.run(low)["queue_position"] == 1
    control.work()
    assert begun(cluster) == [low]
    assert control.run(high)["queue_position"] == 1


def test_a_position_in_the_queue_is_that_of_the_cluster(launch, control, client):
    first, second, third = launch()["id"], launch(priority=-1)["id"], launch()["id"]
    positions = {run["id"]: run["queue_position"] for run in client.get("/api/v1/runs").json()["items"]}
    assert positions == {first: 1, third: 2, second: 3}
    control.work()
    assert [control.run(run_id)["queue_position"] for run_id in (first, third, second)] == [None, 1, 2]


def test_a_changed_priority_counts_at_once(running, launch, control, cluster, client):
    first, second = launch()["id"], launch()["id"]
    control.work()
    assert client.patch(f"/api/v1/runs/{second}", json={"priority": 1}).json()["queue_position"] == 1
    assert control.work() == 2
    assert control.run(first)["status_reason"].endswith("1 of 1 taken, 1 ahead in the queue.")
    succeed(control, running)
    assert begun(cluster) == [running, second]


def test_the_priority_of_a_run_that_does_not_wait_stays(running, client):
    refused = client.patch(f"/api/v1/runs/{running}", json={"priority": 1})
    assert (refused.status_code, "counts only while a run waits" in refused.json()["detail"]) == (409, True)


@pytest.mark.parametrize(
    ("limit", "others", "words"),
    [
        ("per_user", {"user": "bob"}, "it carries at most 2 runs of user ann at once"),
        ("per_project", {"project": "theirs"}, "it carries at most 2 runs of project default at once"),
    ],
)
def test_whoever_is_over_a_limit_waits_and_holds_up_nobody(owned, limits, control, cluster, limit, others, words):
    limits(3, **{limit: 2})
    mine = [owned() for _ in range(4)]
    other = owned(**others)
    control.work()
    assert begun(cluster) == [*mine[:2], other]
    waits = control.run(mine[3])
    assert waits["status_reason"] == f"Waits for a place on cluster local: {words}, 1 ahead in the queue."
    succeed(control, other)
    assert begun(cluster) == [*mine[:2], other]
    succeed(control, mine[0])
    assert begun(cluster) == [*mine[:2], other, mine[2]]


def test_a_limit_that_is_lifted_is_noticed(owned, client, control, cluster):
    body = {"name": "far", "address": "http://127.0.0.1:1", "storage_dir": "/s", "api_url": "http://127.0.0.1:2"}
    client.post("/api/v1/clusters", json=body | {"max_concurrent_runs": 5, "max_concurrent_runs_per_user": 1})
    run_ids = [owned(cluster="far") for _ in range(3)]
    control.work()
    assert begun(cluster) == run_ids[:1]
    changed = client.patch("/api/v1/clusters/far", json={"max_concurrent_runs_per_user": 2})
    assert changed.json()["max_concurrent_runs_per_user"] == 2
    control.work()
    assert begun(cluster) == run_ids[:2]
    kept = client.patch("/api/v1/clusters/far", json={"max_concurrent_runs_per_project": None, "api_url": None}).json()
    assert (kept["max_concurrent_runs_per_user"], kept["api_url"]) == (2, body["api_url"])
    control.work()
    assert begun(cluster) == run_ids[:2]
    lifted = client.patch("/api/v1/clusters/far", json={"max_concurrent_runs_per_user": None}).json()
    assert lifted["max_concurrent_runs_per_user"] is None
    control.work()
    assert begun(cluster) == run_ids


def test_a_sweep_has_no_more_runs_at_once_than_it_wants(client, launch, limits, control, cluster):
    limits(4)
    made = client.post("/api/v1/sweeps", json=GRID | {"max_concurrent": 2}).json()
    points, behind = [run["id"] for run in made["runs"]], launch()["id"]
    control.work()
    assert begun(cluster) == [*points[:2], behind]
    reason = "Waits for a place on cluster local: it carries at most 2 runs of its sweep at once."
    assert control.run(points[2])["status_reason"] == reason
    succeed(control, points[1])
    assert begun(cluster) == [*points[:2], behind, points[2]]


def test_a_stopped_sweep_gives_its_place_in_the_queue_to_others(running, client, launch, control, cluster):
    made = client.post("/api/v1/sweeps", json=GRID).json()
    behind = launch()["id"]
    control.work()
    client.post(f"/api/v1/sweeps/{made['id']}/stop")
    assert control.run(behind)["queue_position"] == 1
    succeed(control, running)
    assert begun(cluster) == [running, behind]


def test_a_run_that_was_lost_or_begins_again_holds_its_users_place(owned, limits, control, cluster, database):
    limits(3, per_user=1)
    first, second = owned(), owned()
    control.work()
    control.sql("UPDATE run SET status = 'lost' WHERE id = :id", id=first)
    control.all_due()
    control.work()
    with database.transaction() as session:
        attempts.judge_dead(session, repository.get_locked(session, first), "It died.")
    control.all_due()
    control.work()
    assert control.status(second) == "queued"
    assert set(begun(cluster)) == {first}


def test_a_place_that_becomes_free_wakes_a_few_and_they_the_one_whose_turn_it_is(owned, limits, control, cluster):
    """However many wait before it, kept back by a limit of their own."""
    limits(2, per_user=1)
    ann, bob = owned(), owned("bob")
    control.work()
    waiting = [owned() for _ in range(12)]
    next_of_bob = owned("bob")
    last = owned("carl")
    control.work()
    control.report("finished", bob, 1, "succeeded", False, None)
    assert control.work() == queue.NUM_SCOUTS + 1
    assert begun(cluster) == [ann, bob, next_of_bob]
    control.report("finished", ann, 1, "succeeded", False, None)
    assert control.work() == queue.NUM_SCOUTS
    assert begun(cluster) == [ann, bob, next_of_bob, waiting[0]]
    control.report("finished", waiting[0], 1, "succeeded", False, None)
    control.report("finished", next_of_bob, 1, "succeeded", False, None)
    assert control.work() == queue.NUM_SCOUTS + 1
    assert set(begun(cluster)[4:]) == {waiting[1], last}


def test_places_that_become_free_at_the_same_time_are_all_taken(owned, limits, control, cluster, database, settings):
    """Each that ends sees the others still hold theirs."""
    limits(4)
    for _ in range(4):
        owned()
    control.work()
    waiting = [owned(f"user {number}") for number in range(10)]
    control.work()
    for first in (0, 4):
        ending = begun(cluster)[first:]
        barrier = threading.Barrier(5)

        def end(run_id, barrier=barrier):
            barrier.wait(10)
            control.report("finished", run_id, 1, "succeeded", False, None)

        def work(barrier=barrier):
            barrier.wait(10)
            work_off(database, settings, cluster.connect)

        threads = [threading.Thread(target=end, args=(run_id,)) for run_id in ending]
        threads.append(threading.Thread(target=work))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        control.work()
        assert set(begun(cluster)[first + 4 :]) == set(waiting[first : first + 4])


def test_a_scout_that_cannot_be_looked_at_keeps_back_no_others(owned, limits, control, cluster, monkeypatch):
    limits(2)
    first, _ = owned(), owned()
    control.work()
    broken, behind = owned(), owned()
    monkeypatch.setattr(repository, "get_locked", _failing_for(broken))
    control.all_due()
    control.work()
    control.report("finished", first, 1, "succeeded", False, None)
    control.sql("UPDATE cluster SET max_concurrent_runs = 3")
    control.work()
    assert behind in begun(cluster)


def _failing_for(run_id):
    get_locked = repository.get_locked

    def failing(session, asked):
        if str(asked) == run_id:
            raise ZeroDivisionError
        return get_locked(session, asked)

    return failing


class Watched:
    """Counts, from a connection of its own, what holds a place whenever a job is submitted."""

    def __init__(self, control):
        self.control, self.most = control, Counter()

    def look(self):
        rows = self.control.sql(
            "SELECT created_by_id, project_id, sweep_id FROM run WHERE status IN ('dispatching', 'running', 'lost')"
        )
        counts = Counter({"all": len(rows)})
        for row in rows:
            counts.update(pair for pair in zip(("user", "project", "sweep"), row, strict=True) if pair[1])
        for key, num in counts.items():
            kind = key if key == "all" else key[0]
            self.most[kind] = max(self.most[kind], num)


def test_the_limits_hold_under_contention_and_every_run_has_its_turn(
    owned, limits, client, control, cluster, database, settings
):
    """Four processes take places while runs end, workers die with a lease in hand and attempts begin again."""
    limits(5, per_user=2, per_project=4)
    sweep = client.post("/api/v1/sweeps", json=GRID | {"max_concurrent": 1}).json()
    waiting = {run["id"] for run in sweep["runs"]}
    for number in range(18):
        waiting.add(owned(f"user {number % 4}", f"project {number % 2}", priority=number % 3))
    chance, watched, lock = random.Random(7), Watched(control), threading.Lock()
    deaths = iter([True, False, False] * 40)

    def submitted():
        watched.look()
        with lock:
            if next(deaths, False):
                raise ZeroDivisionError  # the process is gone: its lease has to run out

    cluster.on_submit = submitted
    for _ in range(200):
        barrier = threading.Barrier(4)

        def work(barrier=barrier):
            barrier.wait(10)
            work_off(database, settings, cluster.connect)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        live = [str(row[0]) for row in control.sql("SELECT id FROM run WHERE status = 'dispatching' ORDER BY id")]
        if not live:
            break
        with database.transaction() as session:
            for run_id in live[:3]:
                run = repository.get_locked(session, run_id)
                if run.current_attempt == 1 and chance.random() < 0.3:
                    attempts.judge_dead(session, run, "It died.")
                else:
                    transition(session, run, Status.SUCCEEDED, "Done.")
        control.sql("UPDATE outbox SET due_at = now(), lock_expires_at = NULL, lock_token = NULL")
    assert {str(row[0]) for row in control.sql("SELECT id FROM run WHERE status = 'succeeded'")} == waiting
    assert control.sql("SELECT count(*) FROM outbox") == [(0,)]
    limit_of = {"all": 5, "user": 2, "project": 4, "sweep": 1}
    assert all(watched.most[kind] <= limit for kind, limit in limit_of.items()), watched.most
    assert watched.most["all"] > 1
