"""Training runs: what was asked for, where it stands and what may happen to it next."""
