"""Verifiers: what a response is worth."""
