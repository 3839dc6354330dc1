"""A run's processes on a Ray cluster: where they go, what they are made of, and their stand-ins that the loop talks
to."""
