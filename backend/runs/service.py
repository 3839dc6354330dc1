"""Rules of runs."""
