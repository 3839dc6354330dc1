"""Where a trainer's process computes."""

import torch


def training_device() -> torch.device:
    """The GPU that the process was given, else the processor."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")
