from http import HTTPStatus
from uuid import uuid4

import pytest

from backend.auth.access import check
from backend.auth.identity import Principal, effective_scopes
from backend.errors import ApiError, not_found

A, B = uuid4(), uuid4()
MISSING = not_found("run", "x")


def answer(principal, project_id, scope):
    try:
        check(principal, project_id, scope, MISSING)
    except ApiError as error:
        return error
    return None


def principal(role, scopes=("admin",)):
    return Principal("user:x", effective_scopes(list(scopes)), roles={A: role})


@pytest.mark.parametrize("scope", ["read", "write", "admin"])
def test_what_is_foreign_or_not_there_is_missing_alike(scope):
    assert answer(principal("admin"), B, scope) is MISSING
    assert answer(principal("admin"), None, scope) is MISSING
    assert answer(Principal("user:x", effective_scopes(["admin"]), is_admin=True), None, scope) is MISSING


def test_what_is_seen_and_may_not_be_changed_is_forbidden():
    refused = answer(principal("viewer"), A, "write")
    assert refused.status == HTTPStatus.FORBIDDEN
    assert "the role launcher" in refused.detail
    assert answer(principal("launcher"), A, "admin").status == HTTPStatus.FORBIDDEN
    assert answer(principal("admin", ["read"]), A, "write").status == HTTPStatus.FORBIDDEN


@pytest.mark.parametrize(
    ("role", "scope"),
    [("viewer", "read"), ("launcher", "write"), ("admin", "admin")],
)
def test_whoever_may_passes(role, scope):
    assert answer(principal(role), A, scope) is None
