"""Gates: what a run has to come to, and whether it did."""
