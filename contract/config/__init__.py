"""The run configuration."""

from contract.config.run import RunConfig

__all__ = ["RunConfig"]
