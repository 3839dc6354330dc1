"""Tokens of workers: the starter that a job is given, and the token to report with that it is exchanged for."""
