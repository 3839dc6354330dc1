"""Properties are checked without a time limit an example: what is tested here is not speed, and machines are busy."""

from hypothesis import settings

settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")
