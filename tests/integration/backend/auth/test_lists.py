"""Lists of users, projects and tokens, page by page."""

import pytest


def every(browser, path, limit):
    """Pages until there is none."""
    pages, cursor = [], None
    while not pages or cursor:
        found = browser.get(f"/api/v1{path}", params={"limit": limit} | ({"cursor": cursor} if cursor else {})).json()
        pages.append(found["items"])
        cursor = found["next_cursor"]
    return pages


def names(pages):
    return [item["name"] for page in pages for item in page]


def test_users_come_by_name(client):
    for name in ("linus", "ada", "grace", "barbara"):
        assert client.post("/api/v1/users", json={"name": name}).status_code == 201
    pages = every(client, "/users", 2)
    assert [len(page) for page in pages] == [2, 2, 1]
    assert names(pages) == ["ada", "admin", "barbara", "grace", "linus"]


def test_projects_come_by_name_and_nobody_pages_into_foreign_ones(client, make_user):
    for name in ("e", "c", "a", "d", "b"):
        assert client.post("/api/v1/projects", json={"name": name}).status_code == 201
    assert names(every(client, "/projects", 4)) == ["a", "b", "c", "d", "default", "e"]
    dora = make_user("dora", b="viewer", e="admin")
    pages = every(dora, "/projects", 1)
    assert [(project["name"], project["role"]) for (project,) in pages] == [("b", "viewer"), ("e", "admin")]
    foreign = client.get("/api/v1/projects?limit=1").json()["next_cursor"]
    assert [item["name"] for item in dora.get(f"/api/v1/projects?cursor={foreign}").json()["items"]] == ["b", "e"]


def test_tokens_come_newest_first_and_nobody_pages_into_foreign_ones(client, make_user):
    hopper, other = make_user("hopper", default="launcher"), make_user("other", default="launcher")
    made = [hopper.post("/api/v1/tokens", json={"name": f"t{n}", "scopes": ["read"]}).json()["name"] for n in range(5)]
    other.post("/api/v1/tokens", json={"name": "foreign", "scopes": ["read"]})
    pages = every(hopper, "/tokens", 2)
    assert ([len(page) for page in pages], names(pages)) == ([2, 2, 1], made[::-1])
    assert set(names(every(client, "/tokens", 3))) == {*made, "foreign", "test"}
    first = client.get("/api/v1/tokens?limit=1").json()["next_cursor"]
    assert {item["user"] for item in hopper.get(f"/api/v1/tokens?cursor={first}").json()["items"]} == {"hopper"}


@pytest.mark.parametrize("path", ["/users", "/projects", "/tokens"])
@pytest.mark.parametrize("query", ["cursor=x", "cursor=WzFd", "limit=0", "limit=201", "limit=many"])
def test_what_is_no_page_is_refused(client, path, query):
    response = client.get(f"/api/v1{path}?{query}")
    assert (response.status_code, response.headers["content-type"]) == (422, "application/problem+json")
    assert response.json()["errors"][0]["parameter"] == query.partition("=")[0]
