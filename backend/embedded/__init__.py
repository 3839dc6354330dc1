"""Finds, starts and supervises on one machine what Foredeck stands on. Used by `foredeck up` and by the tests."""
