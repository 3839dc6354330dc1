class EmbeddedError(Exception):
    """A service could not be started; the message says which, why, and what to do about it."""
