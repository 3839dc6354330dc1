"""Gates: assertions about a run, written in a small language that is parsed and never evaluated."""
