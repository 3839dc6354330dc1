import pytest

from workers.rewards.code_tests import Assertions, Examples, parse_tests

PAIRS = Examples([("1 2", "3"), ("4", "4")])


@pytest.mark.parametrize(
    ("answer", "tests"),
    [
        ("assert f(1) == 2", Assertions(["assert f(1) == 2"])),
        (["assert f(1) == 2", "assert f(2) == 3"], Assertions(["assert f(1) == 2", "assert f(2) == 3"])),
        ("[f(1) for _ in range(3)]", Assertions(["[f(1) for _ in range(3)]"])),
        ({"inputs": ["1 2", "4"], "outputs": ["3", "4"]}, PAIRS),
        ({"inputs": ["1 2", 4], "outputs": [3, ["4"]]}, PAIRS),
        ('{"inputs": ["1 2", "4"], "outputs": ["3", "4"]}', PAIRS),
        ([{"input": "1 2", "output": "3"}, {"input": "4", "output": "4"}], PAIRS),
        ({"inputs": [["1", "2"]], "outputs": ["3"]}, Examples([("1\n2", "3")])),
        ('["assert f(1)"]', Assertions(["assert f(1)"])),
    ],
)
def test_every_form_of_tests_is_read(answer, tests):
    assert parse_tests(answer) == tests


@pytest.mark.parametrize("answer", [5, [], {}, {"inputs": ["1"], "outputs": []}, [1, 2], [{"input": "1"}]])
def test_what_is_no_test_is_refused(answer):
    with pytest.raises(ValueError, match="are neither texts of Python, nor inputs and outputs"):
        parse_tests(answer)
