"""The model that every part of a run configuration derives from, and the types of its fields."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

MAX_COUNT = 1_000_000
"""No count of a run is larger; what is meant for another field, or has a zero too many, is told at once."""

Count = Annotated[int, Field(ge=1, le=MAX_COUNT)]
CountOrNone = Annotated[int, Field(ge=0, le=MAX_COUNT)]
FolderPath = Annotated[str, StringConstraints(min_length=1, max_length=1000, pattern=r"^[^\x00-\x1f\x7f]+$")]
"""Without control characters, which no database and no terminal should see."""


class ConfigModel(BaseModel):
    """Immutable and closed: an unknown key is an error, so that a misspelt setting cannot pass unnoticed, and so is a
    value of another type: true is no number, and "3" is none either."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        use_attribute_docstrings=True,
        strict=True,
        allow_inf_nan=False,
        validate_default=True,
    )
