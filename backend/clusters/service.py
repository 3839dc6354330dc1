"""Rules of clusters."""
