"""The audit of a run: keeps what the tests of its steps add up to, and says when something is wrong."""
