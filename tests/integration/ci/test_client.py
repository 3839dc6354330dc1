"""The Python client against the real service."""

import io
from xml.etree import ElementTree

import pytest

from foredeck import Foredeck, ForedeckError, Gate, events, paging

CONFIG = {"drafter": {"kind": "eagle3"}, "grpo": {"num_steps": 20}}


@pytest.fixture(scope="module")
def client(service):
    with Foredeck(service.url, service.admin_token) as client:
        yield client


@pytest.fixture(scope="module")
def ended(client):
    """A run that has ended, judged by a gate of its own."""
    gates = [{"assertion": "acceptance_length >= 2.8"}]
    run = client.runs.launch({"name": "ended", "config": CONFIG, "labels": {"suite": "client"}, "gates": gates})
    return client.runs.wait(run.id, timeout_s=60)


def test_a_launch_with_the_same_key_is_one_run(client) -> None:
    body = {"name": "once", "config": CONFIG}
    first, again = (client.runs.launch(body, idempotency_key="the-same") for _ in range(2))
    assert first.id == again.id
    assert client.runs.clone(first.id, {"overrides": {"grpo": {"num_steps": 5}}}).num_steps == 5


def test_a_run_is_read_listed_and_waited_for(client, ended) -> None:
    assert (ended.status, ended.gates_verdict, ended.is_settled) == ("succeeded", "passed", True)
    assert client.runs.get(ended.id).config == ended.config
    assert [run.id for run in client.runs.list(labels={"suite": "client"}, status="succeeded")] == [ended.id]


def test_a_change_of_an_old_version_is_refused_with_the_problem(client, ended) -> None:
    old = client.runs.get(ended.id)
    assert client.runs.update(ended.id, notes="first", if_match=old.etag).notes == "first"
    with pytest.raises(ForedeckError) as caught:
        client.runs.update(ended.id, notes="second", if_match=old.etag)
    assert caught.value.status == 412
    assert caught.value.problem is not None
    assert caught.value.problem.request_id


def test_what_advances_is_followed_as_it_does(client) -> None:
    stream = client.runs.follow()
    assert next(stream).kind == "open"
    run = client.runs.launch({"name": "followed", "config": CONFIG})
    seen = list(events.until(stream, lambda event: str(run.id) in event.data and '"succeeded"' in event.data))
    assert {"run", "series"} <= {event.kind for event in seen}
    assert all(event.id for event in seen)
    lines = [line.message for line in client.runs.follow_log(run.id)]
    assert lines[0].startswith("Queued by")
    assert client.runs.log(run.id, limit=1).items[-1].message == lines[-1]


def test_series_are_read_and_exported(client, ended) -> None:
    assert "reward/train_mean" in {series.name for series in client.runs.series(ended.id)}
    data = client.runs.series_data(ended.id, "reward/train_mean", from_step=5)
    assert data.series[0].step[0] == 5
    file = io.BytesIO()
    size_bytes = client.export.series(file, form="csv", labels={"suite": "client"}, names=["reward/train_mean"])
    assert size_bytes == len(file.getvalue())
    assert len(file.getvalue().splitlines()) == 1 + 20
    same = io.BytesIO()
    found = {"status": "succeeded", "search": str(ended.id), "project": "default"}
    client.export.series(same, form="csv", names=["reward/train_mean"], **found)
    assert same.getvalue() == file.getvalue()
    assert client.export.series(io.BytesIO(), form="csv", run_ids="all") > size_bytes


def test_gates_are_evaluated_and_reported(client, ended) -> None:
    evaluation = client.gates.evaluate(ended.id, [Gate(assertion="acceptance_length >= 3.2", name="too much")])
    assert (evaluation.verdict, evaluation.num_failed) == ("failed", 1)
    newest = client.gates.verdict(ended.id)
    assert newest.evaluation is not None
    assert newest.evaluation.id == evaluation.id
    assert len(ElementTree.fromstring(client.gates.junit(ended.id)).findall(".//failure")) == 1
    assert "too much" in client.gates.markdown(ended.id, evaluation.id)
    assert client.gates.evaluate(ended.id).verdict == "passed"


def test_sweeps_are_launched_and_stopped(client) -> None:
    body = {"name": "sweep", "config": CONFIG, "labels": {"ends": "silent"}, "axes": {"drafter.draft_length": [2, 3]}}
    sweep = client.sweeps.launch(body)
    assert len(client.sweeps.get(sweep.id).runs) == sweep.num_runs == 2
    assert sweep.id in {each.id for each in client.sweeps.list()}
    assert client.sweeps.stop(sweep.id).num_runs == 2


def test_a_sweep_is_changed_unless_somebody_was_faster(client) -> None:
    old = client.sweeps.launch({"name": "changed", "config": CONFIG, "axes": {"seed": [1]}})
    old = client.sweeps.get(old.id)
    assert client.sweeps.update(old.id, notes="first", labels={}, if_match=old.etag).notes == "first"
    with pytest.raises(ForedeckError) as caught:
        client.sweeps.update(old.id, notes="second", if_match=old.etag)
    assert caught.value.status == 412
    client.runs.wait(old.runs[0].id, timeout_s=60)
    best = next(each.best for each in client.sweeps.list(best_by="acceptance_length") if each.id == old.id)
    assert best is not None
    assert (best.run_id, best.point, best.metric) == (old.runs[0].id, {"seed": 1}, "acceptance_length")


def test_lists_of_who_may_do_what_are_whole(client, monkeypatch) -> None:
    names = [f"reader-{number}" for number in range(5)]
    for name in names:
        client.access.create_user(name)
        client.access.create_project(name)
        client.access.create_token(name, ["read"])
    monkeypatch.setattr(paging, "LIMIT", 2)
    for listed in (client.access.users(), client.access.projects(), client.access.tokens()):
        assert sorted(each.name for each in listed if each.name in names) == names


def test_webhooks_are_made_listed_and_removed(client) -> None:
    webhook = client.webhooks.create("ci", "https://ci.example.org/foredeck", ["run.failed"])
    assert webhook.secret.startswith("whsec_")
    assert webhook.id in {each.id for each in client.webhooks.list()}
    assert list(client.webhooks.deliveries(webhook.id)) == []
    client.webhooks.delete(webhook.id)
    with pytest.raises(ForedeckError, match="There is no webhook"):
        client.webhooks.get(webhook.id)
