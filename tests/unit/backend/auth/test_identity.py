from uuid import uuid4

import pytest

from backend.auth.identity import Principal, effective_scopes

A, B = uuid4(), uuid4()
EVERY = effective_scopes(["admin"])


@pytest.mark.parametrize(
    ("given", "effective"),
    [
        ([], set()),
        (["read"], {"read"}),
        (["write"], {"read", "write"}),
        (["admin"], {"read", "write", "admin"}),
        (["ingest"], {"ingest"}),
        (["start"], {"start"}),
        (["root", "read"], {"read"}),
    ],
)
def test_a_scope_includes_the_lesser_ones_and_none_includes_a_workers(given, effective):
    assert effective_scopes(given) == effective


@pytest.mark.parametrize(
    ("role", "allowed"),
    [("viewer", {"read"}), ("launcher", {"read", "write"}), ("admin", {"read", "write", "admin"})],
)
def test_a_role_counts_in_its_project_alone(role, allowed):
    principal = Principal("user:x", EVERY, roles={A: role})
    scopes = ("read", "write", "admin", "start", "ingest")
    assert {scope for scope in scopes if principal.allows_in(A, scope)} == allowed
    assert not any(principal.allows_in(B, scope) for scope in scopes)
    assert principal.projects("read") == {A}
    assert principal.projects("admin") == ({A} if role == "admin" else frozenset())


def test_a_role_of_admin_administers_its_project_and_not_everything():
    principal = Principal("user:x", EVERY, roles={A: "admin"})
    assert principal.allows_in(A, "admin")
    assert not principal.allows("admin")


def test_a_token_bounds_what_its_users_roles_allow():
    principal = Principal("token:x/y", effective_scopes(["read"]), roles={A: "admin"})
    assert principal.allows_in(A, "read")
    assert not principal.allows_in(A, "write")
    assert principal.projects("write") == frozenset()


def test_one_who_administers_everything_has_every_project_within_the_tokens_scopes():
    principal = Principal("user:x", EVERY, is_admin=True)
    assert principal.projects("admin") is None
    assert principal.allows_in(A, "admin")
    reader = Principal("token:x/y", effective_scopes(["read"]), is_admin=True)
    assert (reader.projects("read"), reader.projects("write")) == (None, frozenset())
    assert not reader.allows("admin")


def test_a_worker_may_do_nothing_but_report():
    worker = Principal("run:x", effective_scopes(["ingest"]), run_id=uuid4())
    assert worker.allows("ingest")
    assert not any(worker.allows(scope) for scope in ("read", "write", "admin"))
    assert worker.projects("read") == frozenset()


def test_nobody_else_reports():
    assert not Principal("user:x", EVERY, is_admin=True).allows("ingest")
