"""Kernels in C for generation on a processor."""
