"""Tells receivers of a project's events."""
