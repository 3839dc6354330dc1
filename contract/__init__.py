"""What crosses the wire between the control plane, the workers, the command line and the dashboard.

Imports pydantic and the standard library only, so that every side can afford it.
"""
