import pytest

from contract.config import RunConfig
from contract.config.needs import Needs, needs


@pytest.mark.parametrize(
    ("needed", "words"),
    [
        (Needs(2, 8), "2 nodes with 8 GPUs each"),
        (Needs(1, 1), "1 node with 1 GPU"),
        (Needs(3, 1), "3 nodes with 1 GPU each"),
    ],
)
def test_in_words(needed, words):
    assert needed.in_words() == words


def test_what_a_configuration_asks_for():
    assert needs(RunConfig()) == Needs(1, 0)
    assert needs(RunConfig.model_validate({"resources": {"gpus_per_node": 4}})) == Needs(1, 4)
