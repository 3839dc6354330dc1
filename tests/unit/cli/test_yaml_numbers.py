import pytest
import yaml

from cli import yaml_numbers


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-3", 0.001),
        ("2E5", 200_000.0),
        ("-.5e+1", -5.0),
        ("1.e2", 100.0),
        ("0.001", 0.001),
        ("3", 3),
        ("true", True),
    ],
)
def test_numbers_are_numbers(text, value):
    loaded = yaml_numbers.load(text)
    assert (loaded, type(loaded)) == (value, type(value))


@pytest.mark.parametrize("text", ["'1e-3'", "1e", "e3", "1e3x", "abc"])
def test_texts_stay_texts(text):
    assert isinstance(yaml_numbers.load(text), str)


def test_nothing_is_made_of_a_tag():
    with pytest.raises(yaml.YAMLError):
        yaml_numbers.load("!!python/object/apply:os.system ['true']")
