import pytest
from pydantic import BaseModel
from starlette.requests import Request

from backend.errors import ApiError
from backend.etag import answer, require


class Read(BaseModel):
    name: str = "a"
    labels: dict[str, str] = {"k": "v", "l": "w"}
    step: int = 0


class Update(BaseModel):
    name: str | None = None
    labels: dict[str, str] | None = None
    secret: str | None = None


def request(method="GET", *given):
    headers = [(b"if-none-match", text.encode()) for text in given]
    return Request({"type": "http", "method": method, "path": "/", "headers": headers})


def tag(**fields):
    return answer(request(), Read(**fields), Update).headers["etag"]


def test_a_tag_is_strong_and_tells_any_two_representations_apart():
    assert tag().startswith('"')
    assert tag() == tag()
    assert len({tag(), tag(step=1), tag(name="b"), tag(labels={})}) == 4


def test_what_cannot_be_edited_does_not_stand_in_the_way_of_an_edit():
    require(tag(step=1), Read(step=9), Update)
    require(tag(), Read(labels={"l": "w", "k": "v"}), Update)


@pytest.mark.parametrize("fields", [{"name": "b"}, {"labels": {"k": "v"}}])
def test_what_was_edited_since_does(fields):
    with pytest.raises(ApiError) as raised:
        require(tag(), Read(**fields), Update)
    assert raised.value.status == 412


def test_if_match_lists_tags_names_none_or_any():
    require(None, Read(), Update)
    require("*", Read(), Update)
    require(f'"other", {tag()}', Read(), Update)
    require(f"W/{tag()}", Read(), Update)
    for text in ["", '""', '"other"', "nonsense", ",", '"."']:
        with pytest.raises(ApiError):
            require(text, Read(), Update)


def test_who_has_the_very_representation_is_not_sent_it_again():
    for given in [tag(), f"W/{tag()}", f'"x", {tag()}', "*"]:
        found = answer(request("GET", given), Read(), Update)
        assert (found.status_code, found.body, found.headers["etag"]) == (304, b"", tag())
    assert answer(request("GET", '"x"', tag()), Read(), Update).status_code == 304


def test_a_change_of_anything_is_news():
    edited_alike = answer(request("GET", tag(step=1)), Read(step=2), Update)
    assert edited_alike.status_code == 200
    assert b'"step":2' in edited_alike.body
    assert answer(request("PATCH", tag()), Read(), Update).status_code == 200
