"""Projects and members."""

PROJECTS = "/api/v1/projects"


def names(browser):
    return [project["name"] for project in browser.get(PROJECTS).json()["items"]]


def test_everybody_sees_their_own_projects_with_their_role(client, alice, carol, projects):
    assert names(client) == ["a", "b", "default"]
    assert [(project["name"], project["role"]) for project in alice.get(PROJECTS).json()["items"]] == [
        ("a", "launcher")
    ]
    assert alice.get(f"{PROJECTS}/a").json()["num_members"] == 2
    assert client.get(f"{PROJECTS}/b").json()["role"] == "admin"


def test_projects_are_made_by_those_who_administer_everything(client, carol):
    assert carol.post(PROJECTS, json={"name": "c"}).status_code == 403
    made = client.post(PROJECTS, json={"name": "c"})
    assert (made.status_code, made.headers["location"]) == (201, f"{PROJECTS}/c")
    taken = client.post(PROJECTS, json={"name": "c"})
    assert (taken.status_code, taken.json()["errors"][0]["pointer"]) == (409, "/name")
    for name in ("", "C", "a/b", "..", "-", "x" * 64):
        assert client.post(PROJECTS, json={"name": name}).status_code == 422, name


def test_a_project_is_renamed_with_all_that_is_in_it(client, alice, carol, launch_in):
    run = launch_in(alice, "a")
    assert carol.patch(f"{PROJECTS}/a", json={"name": "z"}).status_code == 403
    assert client.patch(f"{PROJECTS}/a", json={"name": "b"}).status_code == 409
    assert client.patch(f"{PROJECTS}/a", json={"name": "z"}).json()["num_runs"] == 1
    assert alice.get(f"/api/v1/runs/{run['id']}").json()["project"] == "z"
    assert alice.get(f"{PROJECTS}/a").status_code == 404


def test_only_an_empty_project_goes_and_its_tokens_with_it(client, alice, carol, bearer, launch_in):
    launch_in(alice, "a")
    refused = client.delete(f"{PROJECTS}/a")
    assert (refused.status_code, "1 runs belong to it" in refused.json()["detail"]) == (409, True)
    client.post(PROJECTS, json={"name": "c"})
    bound = bearer(client, project="c")
    assert client.delete(f"{PROJECTS}/c").status_code == 204
    assert "c" not in names(client)
    assert bound.get("/api/v1/runs").status_code == 401


def test_the_default_project_stays(client):
    assert client.delete(f"{PROJECTS}/default").status_code == 409
    assert client.patch(f"{PROJECTS}/default", json={"name": "z"}).status_code == 409


def test_who_administers_a_project_gives_and_takes_roles_in_it(client, carol, make_user):
    dave = make_user("dave")
    for _ in range(2):
        given = carol.put(f"{PROJECTS}/a/members/dave", json={"role": "launcher"})
        assert given.json() == {"user": "dave", "role": "launcher", "is_active": True}
    assert names(dave) == ["a"]
    carol.put(f"{PROJECTS}/a/members/dave", json={"role": "viewer"})
    assert {member["user"]: member["role"] for member in dave.get(f"{PROJECTS}/a/members").json()} == {
        "carol": "admin",
        "dave": "viewer",
    }
    assert [carol.delete(f"{PROJECTS}/a/members/dave").status_code for _ in range(2)] == [204, 204]
    assert names(dave) == []


def test_who_does_not_administer_it_gives_no_roles(alice, bob, carol):
    for caller, status in ((alice, 403), (bob, 404)):
        assert caller.put(f"{PROJECTS}/a/members/bob", json={"role": "admin"}).status_code == status
        assert caller.delete(f"{PROJECTS}/a/members/carol").status_code == status
    assert carol.put(f"{PROJECTS}/b/members/carol", json={"role": "admin"}).status_code == 404


def test_unknown_users_and_roles_are_refused(carol):
    assert carol.put(f"{PROJECTS}/a/members/nobody", json={"role": "viewer"}).status_code == 404
    assert carol.put(f"{PROJECTS}/a/members/carol", json={"role": "owner"}).status_code == 422
