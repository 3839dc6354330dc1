import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.runs.merge_patch import merge_patch

# The test cases of RFC 7396, appendix A.
CASES = [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    (["a", "b"], ["c", "d"], ["c", "d"]),
    ({"a": "b"}, ["c"], ["c"]),
    ({"a": "foo"}, None, None),
    ({"a": "foo"}, "bar", "bar"),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
]

values = st.recursive(
    st.integers() | st.text(max_size=3) | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize(("target", "patch", "expected"), CASES)
def test_the_standards_own_cases(target, patch, expected):
    assert merge_patch(target, patch) == expected


@given(values)
def test_an_empty_patch_changes_no_object(value):
    target = {"a": value}
    assert merge_patch(target, {}) == target


@given(values, values)
def test_twice_is_as_once_and_the_target_stays(value, patch):
    target = {"a": value}
    before = repr(target)
    once = merge_patch(target, {"a": patch, "b": None})
    assert merge_patch(once, {"a": patch, "b": None}) == once
    assert repr(target) == before
