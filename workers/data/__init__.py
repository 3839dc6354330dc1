"""Prompts, tokens and padded batches."""
