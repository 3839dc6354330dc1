import asyncio

from fastapi import Request

from backend.auth.guard import admit


def request_of(app, method, headers):
    scope = {"type": "http", "app": app, "method": method, "path": "/", "headers": headers, "state": {}}
    return Request(scope)


async def _welcome_before_and_after(app, database, client, revoke):
    request = request_of(app, "GET", [(b"authorization", client.headers["authorization"].encode())])
    await admit(request)
    with database.transaction() as session:
        before = request.state.is_still_welcome(session)
    revoke()
    with database.transaction() as session:
        return before, request.state.is_still_welcome(session)


def test_a_revoked_token_is_not_welcome_any_more(app, database, client, make_client):

    caller = make_client("read")
    prefix = caller.headers["authorization"].split("_")[1]

    def revoke():
        ids = {token["prefix"]: token["id"] for token in client.get("/api/v1/tokens").json()["items"]}
        assert client.delete(f"/api/v1/tokens/{ids[prefix]}").status_code == 204

    assert asyncio.run(_welcome_before_and_after(app, database, caller, revoke)) == (True, False)
