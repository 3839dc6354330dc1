from backend.figures.palette import faint


def test_faint_keeps_the_colour() -> None:
    assert faint("#0072B2", 0.5) == "rgba(0,114,178,0.5)"
