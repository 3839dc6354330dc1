import pytest


@pytest.fixture
def built(settings):
    (settings.frontend_dir / "assets").mkdir(parents=True)
    (settings.frontend_dir / "index.html").write_text("<title>Foredeck</title>")
    (settings.frontend_dir / "assets" / "index-abc.js").write_text("run()")
    (settings.frontend_dir.parent / "secret").write_text("secret")


@pytest.mark.parametrize("path", ["/", "/runs", "/runs/some-run", "/apis"])
def test_every_page_is_the_same_file(make_client, built, path):
    response = make_client().get(path)
    assert response.status_code == 200
    assert "Foredeck" in response.text
    assert "frame-ancestors 'none'" in response.headers["content-security-policy"]
    assert response.headers["cache-control"] == "no-cache"


def test_assets_are_kept_and_gone_ones_are_not_the_page(make_client, built):
    client = make_client()
    assert "immutable" in client.get("/assets/index-abc.js").headers["cache-control"]
    assert client.get("/assets/index-old.js").status_code == 404


@pytest.mark.parametrize("path", ["/../secret", "/..%2fsecret", "/%2e%2e/secret", "/assets/..%2f..%2fsecret"])
def test_no_file_outside_the_folder_is_served(make_client, built, path):
    assert "secret" not in make_client().get(path).text


def test_without_a_build_the_answer_says_how_to_get_one(make_client):
    response = make_client().get("/")
    assert response.status_code == 404
    assert "make" in response.json()["detail"]
