"""The audit log, as it is read."""
