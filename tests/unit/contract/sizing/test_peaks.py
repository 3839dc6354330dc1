import pytest

from contract.sizing.peaks import peak_tflops


@pytest.mark.parametrize(
    ("name", "peak"),
    [
        ("NVIDIA H100 80GB HBM3", 989),
        ("NVIDIA H100 PCIe", 756),
        ("NVIDIA A100-SXM4-80GB", 312),
        ("NVIDIA GB200", 2500),
        ("NVIDIA B200", 2250),
        ("NVIDIA GeForce GTX 1080", None),
    ],
)
def test_a_driver_s_name_is_recognised(name: str, peak: float | None) -> None:
    assert peak_tflops(name) == peak
