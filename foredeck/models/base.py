"""What all answers share."""

from typing import Generic, TypeVar

from pydantic import BaseModel, ConfigDict, PrivateAttr

Item = TypeVar("Item")


class Answer(BaseModel):
    """What is read of an answer; a service of a later version may tell more."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class Versioned(Answer):
    """Something that others may change meanwhile."""

    _etag: str | None = PrivateAttr(default=None)

    @property
    def etag(self) -> str | None:
        """Its version: give it back with a change to be refused when somebody else was faster."""
        return self._etag

    def keep_etag(self, etag: str | None) -> None:
        self._etag = etag


class Page(Answer, Generic[Item]):
    """Some of a list, and where the rest is."""

    items: list[Item]
    next_cursor: str | None = None
