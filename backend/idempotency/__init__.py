"""Requests that can be sent again: one with an Idempotency-Key is carried out once, and answered the same each time."""
