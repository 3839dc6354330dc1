"""What a GPU can compute at most, for the share of it that a run makes use of."""

PEAK_BFLOAT16_TFLOPS = {
    "A100": 312.0,
    "L40S": 362.0,
    "H100 PCIe": 756.0,
    "H100": 989.0,
    "H200": 989.0,
    "GH200": 989.0,
    "B200": 2250.0,
    "GB200": 2500.0,
}
"""Dense products in bfloat16, without sparsity, by a part of the GPU's name; from NVIDIA's data sheets."""


def peak_tflops(gpu_name: str) -> float | None:
    """Of a GPU by the name that its driver gives it, such as `NVIDIA H100 80GB HBM3`; None where it is not known."""
    fitting = [name for name in PEAK_BFLOAT16_TFLOPS if name.lower() in gpu_name.lower()]
    return PEAK_BFLOAT16_TFLOPS[max(fitting, key=len)] if fitting else None
