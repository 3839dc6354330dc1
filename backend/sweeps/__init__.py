"""Sweeps: one configuration, launched with several values of some of its keys."""
