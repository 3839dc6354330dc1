import json
from datetime import datetime, timedelta
from ipaddress import ip_address, ip_network

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select, text

from backend.auth.identity import Principal
from backend.models import AuditEntry, Project, Webhook
from backend.webhooks import log, service
from backend.webhooks.delivery import Courier
from backend.webhooks.sealing import unseal
from backend.webhooks.signing import sign
from tests.integration.backend.webhooks.servers import serving

PATH = "/api/v1/webhooks"
BODY = {"name": "bot", "url": "https://8.8.8.8/in?key=s3cr3t", "events": ["run.failed", "run.lost"]}


@pytest.fixture
def create(client):
    def create(**fields):
        response = client.post(PATH, json={**BODY, **fields})
        assert response.status_code == 201, response.text
        return response.json()

    return create


@pytest.fixture
def entries(database):
    def entries():
        with database.transaction() as session:
            is_ours = AuditEntry.action.startswith("webhook.")
            return session.scalars(select(AuditEntry).where(is_ours).order_by(AuditEntry.id)).all()

    return entries


@pytest.fixture
def server():
    with serving() as server:
        yield server


@pytest.fixture
def inside(settings, app):
    """The service may reach this machine."""
    app.state.settings = settings.model_copy(update={"webhook_allowed_networks": (ip_network("127.0.0.0/8"),)})
    return app.state.settings


def test_the_secret_is_shown_once(client, create, database, entries):
    made = create()
    assert made["secret"].startswith("whsec_")
    path = f"{PATH}/{made['id']}"
    for answer in (client.get(path), client.get(PATH), client.patch(path, json={"name": "b"})):
        assert made["secret"] not in answer.text
        assert "secret" not in {key for item in [answer.json()] for key in item}
    assert (made["project"], made["events"], made["is_enabled"]) == ("default", ["run.failed", "run.lost"], True)
    told = json.dumps([entry.detail for entry in entries()])
    assert "whsec_" not in told
    assert "s3cr3t" not in told, "the address may hold the receiver's own secret"
    assert [entry.action for entry in entries()] == ["webhook.create", "webhook.update"]


def test_from_a_ping_to_the_delivery_log(client, create, inside, database, server):
    server.answers = [(200, {}, b"fine <script>")]
    made = create(url=f"http://127.0.0.1:{server.port}/")
    path = f"{PATH}/{made['id']}"
    ping = client.post(f"{path}/ping")
    assert (ping.status_code, ping.json()["state"], ping.json()["type"]) == (202, "pending", "ping")
    assert client.get(path).json()["num_pending"] == 1
    assert Courier(database, inside).deliver_next()
    ((_, headers, body),) = server.requests
    assert headers["webhook-signature"] == sign(
        made["secret"], headers["webhook-id"], int(headers["webhook-timestamp"]), body
    )
    assert json.loads(body)["data"] == {"webhook_id": made["id"], "name": "bot"}
    (delivery,) = client.get(f"{path}/deliveries").json()["items"]
    assert (delivery["message_id"], delivery["state"]) == (headers["webhook-id"], "succeeded")
    assert delivery["last_attempt"]["status"] == 200
    whole = client.get(f"{path}/deliveries/{delivery['id']}").json()
    assert (whole["body"], [attempt["answer"] for attempt in whole["attempts"]]) == (body.decode(), ["fine <script>"])


def test_what_was_sent_can_be_sent_again(client, create, inside, database, server, entries):
    path = f"{PATH}/{create(url=f'http://127.0.0.1:{server.port}/')['id']}"
    delivery_id = client.post(f"{path}/ping").json()["id"]
    courier = Courier(database, inside)
    courier.deliver_next()
    again = client.post(f"{path}/deliveries/{delivery_id}/redeliver")
    assert (again.status_code, again.json()["state"], again.json()["num_attempts"]) == (202, "pending", 1)
    courier.deliver_next()
    assert len({(headers["webhook-id"], body) for _, headers, body in server.requests}) == 1
    assert client.get(f"{path}/deliveries/{delivery_id}").json()["num_attempts"] == len(server.requests) == 2
    assert entries()[-1].action == "webhook.redeliver"


def test_the_delivery_log_has_pages(client, create):
    path = f"{PATH}/{create()['id']}"
    sent = [client.post(f"{path}/ping").json()["id"] for _ in range(5)]
    found, cursor = [], None
    while cursor is not None or not found:
        page = client.get(f"{path}/deliveries", params={"limit": 2, **({"cursor": cursor} if cursor else {})}).json()
        found += [item["id"] for item in page["items"]]
        cursor = page["next_cursor"]
    assert found == sent[::-1]
    assert client.get(f"{path}/deliveries?state=failed").json()["items"] == []
    assert len(client.get(f"{path}/deliveries?state=pending").json()["items"]) == 5
    assert client.get(f"{path}/deliveries?state=other").status_code == 422
    assert client.get(f"{path}/deliveries?cursor=x").status_code == 422


def test_rotating_keeps_the_old_secret_for_a_while(client, create, database, entries):
    made = create()
    path = f"{PATH}/{made['id']}/rotate-secret"
    rotated = client.post(path, json={"overlap_s": 3600}).json()
    assert rotated["secret"] != made["secret"]
    left = datetime.fromisoformat(rotated["previous_secret_expires_at"]) - datetime.fromisoformat(rotated["updated_at"])
    assert timedelta(minutes=59) < left < timedelta(minutes=61)
    with database.transaction() as session:
        row = session.scalars(select(Webhook)).one()
        assert (unseal(row.secret, ()), unseal(row.previous_secret, ())) == (rotated["secret"], made["secret"])
        row.previous_secret_expires_at = row.updated_at
    assert client.get(f"{PATH}/{made['id']}").json()["previous_secret_expires_at"] is None
    at_once = client.post(path, json={"overlap_s": 0}).json()
    assert at_once["previous_secret_expires_at"] is None
    assert client.post(path, json={"overlap_s": -1}).status_code == 422
    assert entries()[-1].action == "webhook.rotate_secret"


def test_a_disabled_webhook_is_told_nothing_until_it_is_enabled(client, create, database, project_id, deliveries):
    path = f"{PATH}/{create()['id']}"
    client.post(f"{path}/ping")
    disabled = client.patch(path, json={"is_enabled": False}).json()
    assert (disabled["is_enabled"], disabled["num_pending"]) == (False, 0)
    refused = client.post(f"{path}/ping")
    assert (refused.status_code, "enable it first" in refused.json()["detail"]) == (409, True)
    with database.transaction() as session:
        service.emit(session, project_id, "run.failed", {})
        session.execute(text("UPDATE webhook SET disabled_reason = 'x', failing_since = now(), num_failures = 60"))
    assert [row.state for row in deliveries()] == ["failed"]
    enabled = client.patch(path, json={"is_enabled": True}).json()
    assert (enabled["is_enabled"], enabled["disabled_reason"], enabled["failing_since"]) == (True, None, None)
    assert client.post(f"{path}/ping").status_code == 202


def test_of_two_edits_of_what_was_loaded_the_second_is_refused(client, create):
    path = f"{PATH}/{create()['id']}"
    tag = client.get(path).headers["etag"]
    client.post(f"{path}/ping")
    edits = [client.patch(path, json={"name": name}, headers={"If-Match": tag}) for name in ("a", "b")]
    assert [edit.status_code for edit in edits] == [200, 412]
    assert client.get(path).json()["name"] == "a"
    assert client.get(path, headers={"If-None-Match": client.get(path).headers["etag"]}).status_code == 304


def test_a_webhook_goes_with_its_deliveries(client, create, deliveries, entries):
    path = f"{PATH}/{create()['id']}"
    client.post(f"{path}/ping")
    assert client.delete(path).status_code == 204
    assert client.get(path).status_code == 404
    assert client.delete(path).status_code == 404
    assert deliveries() == []
    assert entries()[-1].action == "webhook.delete"


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("url", "https://127.0.0.1/", "127.0.0.1 is loopback"),
        ("url", "https://169.254.169.254/latest/meta-data/", "credentials of machines"),
        ("url", "https://[::1]/", "loopback"),
        ("url", "https://[::ffff:169.254.169.254]/", "write it as IPv4"),
        ("url", "https://[fd00::1]/", "private"),
        ("url", "https://localhost/", "resolves to an address inside"),
        ("url", "https://localhost./", "no dot at the end"),
        ("url", "https://2130706433/", "four decimal numbers"),
        ("url", "https://0x7f.1/", "four decimal numbers"),
        ("url", "https://0177.0.0.1/", "four decimal numbers"),
        ("url", "http://8.8.8.8/", "must begin with https://"),
        ("url", "file:///etc/passwd", "must look like https://host/path"),
        ("url", "https://me:hunter2@8.8.8.8/", "must not hold a user name"),
        ("url", "https://8.8.8.8:22/", "has the port 22"),
        ("url", "https://①②⑦.⓪.⓪.①/", "xn-- form"),
        ("url", 7, "must be"),
        ("events", [], "must not be empty"),
        ("events", ["run.exploded"], "run.queued"),
        ("name", "", "must not be empty"),
        ("project", "nosuch", "no such project"),
        ("secret", "mine", "unknown"),
    ],
)
def test_what_could_do_harm_is_refused(client, create, field, value, words):
    refused = client.post(PATH, json={**BODY, field: value})
    (error,) = refused.json()["errors"]
    assert (refused.status_code, error["pointer"].split("/")[1]) == (422, field)
    assert words in error["detail"]
    assert "hunter2" not in refused.text
    if field == "url":
        changed = client.patch(f"{PATH}/{create()['id']}", json={field: value})
        assert (changed.status_code, changed.json()["errors"][0]["detail"]) == (422, error["detail"])
    assert client.get(PATH).json()["items"] == client.get(PATH, params={"project": "default"}).json()["items"]


def test_a_name_is_asked_for_each_time(settings):
    """`check_url` as routes call it, with a resolver that plays."""
    answers = [["8.8.8.8"], ["8.8.8.8", "10.0.0.1"], ["::ffff:127.0.0.1"]]

    def resolve(host, timeout_s):
        return [ip_address(address) for address in answers.pop(0)]

    service.check_url("https://hook.example/", settings, resolve)
    for _ in range(2):
        with pytest.raises(Exception, match="resolves to an address inside"):
            service.check_url("https://hook.example/", settings, resolve)


def test_there_is_an_end_to_their_number(client, create):
    for _ in range(service.MAX_PER_PROJECT):
        create()
    refused = client.post(PATH, json=BODY)
    assert (refused.status_code, "delete one" in refused.json()["detail"]) == (409, True)


def test_a_repeated_request_shows_no_secret_again(client):
    headers = {"Idempotency-Key": "once"}
    first = client.post(PATH, json=BODY, headers=headers)
    again = client.post(PATH, json=BODY, headers=headers)
    assert (first.status_code, again.status_code) == (201, 409)
    assert "whsec_" not in again.text
    assert len(client.get(PATH).json()["items"]) == 1


@pytest.fixture
def roles(app, database, project_id):
    """A client for each role in the project `default`."""
    from backend.auth.service import issue_user_token
    from backend.models import ProjectMember, User

    clients = {}
    with database.transaction() as session:
        for role in ("viewer", "launcher", "admin", "nobody"):
            user = User(name=f"the {role}")
            session.add(user)
            session.flush()
            if role != "nobody":
                session.add(ProjectMember(project_id=project_id, user_id=user.id, role=role))
            token = issue_user_token(session, user, "t", ["admin"])
            clients[role] = TestClient(app, headers={"Authorization": f"Bearer {token}"})
    return clients


def test_webhooks_are_for_those_who_administer_the_project(roles, create):
    path = f"{PATH}/{create()['id']}"
    assert {role: caller.get(path).status_code for role, caller in roles.items()} == {
        "viewer": 403,
        "launcher": 403,
        "admin": 200,
        "nobody": 404,
    }
    assert {role: len(caller.get(PATH).json()["items"]) for role, caller in roles.items()} == {
        "viewer": 0,
        "launcher": 0,
        "admin": 1,
        "nobody": 0,
    }
    answers = {role: caller.post(PATH, json=BODY).status_code for role, caller in roles.items()}
    assert answers == {"viewer": 403, "launcher": 403, "admin": 201, "nobody": 403}


def test_a_delivery_of_another_webhook_is_not_there(client, create):
    delivery_id = client.post(f"{PATH}/{create()['id']}/ping").json()["id"]
    other = f"{PATH}/{create()['id']}"
    assert client.get(f"{other}/deliveries/{delivery_id}").status_code == 404
    assert client.post(f"{other}/deliveries/{delivery_id}/redeliver").status_code == 404


def test_old_deliveries_are_deleted(client, create, database, deliveries):
    path = f"{PATH}/{create()['id']}"
    for _ in range(3):
        client.post(f"{path}/ping")
    with database.transaction() as session:
        session.execute(text("UPDATE webhook_delivery SET created_at = now() - interval '31 days'"))
        one = "(SELECT id FROM webhook_delivery LIMIT 1)"
        session.execute(text(f"UPDATE webhook_delivery SET due_at = NULL WHERE id = {one}"))
        service.trim(session)
    assert len(deliveries()) == 2, "what is not done stays"


def test_a_removed_project_takes_its_webhooks_along(database, project_id, insert_webhook):
    with database.transaction() as session:
        project = Project(name="short-lived")
        session.add(project)
        session.flush()
        row = Webhook(project_id=project.id, name="x", url="https://hook.example/", events=["run.failed"], secret="")
        session.add(row)
        session.flush()
        log.ping(session, row.id, Principal("user:x", frozenset()))
        session.execute(text("UPDATE audit_entry SET project_id = NULL"))
        session.delete(project)
        session.flush()
        assert session.scalars(select(Webhook)).all() == []
