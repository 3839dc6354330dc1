"""The model that every part of a run configuration derives from."""

from pydantic import BaseModel, ConfigDict


class ConfigModel(BaseModel):
    """Immutable and closed: an unknown key is an error, so that a misspelt setting cannot pass unnoticed."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        use_attribute_docstrings=True,
        allow_inf_nan=False,
        validate_default=True,
    )
