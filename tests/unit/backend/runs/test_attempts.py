import pytest

from backend.runs.attempts import in_short


@pytest.mark.parametrize(
    ("error", "short"),
    [
        ("The worker failed", "The worker failed."),
        ("The Ray job has ended.", "The Ray job has ended."),
        ("Rollout engine 0's process died. The actor died.\n\tpid: 7\nIts log ends with:\nx", None),
    ],
)
def test_the_first_line_is_a_sentence(error, short):
    assert in_short(error) == (short or "Rollout engine 0's process died. The actor died.")
