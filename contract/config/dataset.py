"""Where prompts and answers come from."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from contract.config.base import ConfigModel, FolderPath

FieldName = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]
Text = Annotated[str, StringConstraints(max_length=20_000, pattern=r"^[^\x00]*$")]
"""What the policy reads; may have several lines."""

PROMPT_PLACE = "{prompt}"


class _Source(ConfigModel):
    """What every source has."""

    kind: str
    prompt_field: FieldName | None = None
    """Field of the prompt, a text or a list of chat messages; a dot leads into an object. Without one, known layouts
    are recognised, those of DAPO-Math-17K and AIME-2024 among them, and the log says which."""
    answer_field: FieldName | None = None
    """Field of what the reward compares with: an answer, or the tests of a program. Likewise."""
    answer_mark: Annotated[str, StringConstraints(max_length=100, pattern=r"^[^\x00]*$")] = ""
    """Where the field holds a worked solution: the answer is what follows the last of these marks, as #### in GSM8K."""
    prompt_template: Text = PROMPT_PLACE
    """What the policy is told, with {prompt} in place of the row's prompt: instructions on how to answer go here."""


class JsonlSource(_Source):
    """A file with one JSON object a line."""

    kind: Literal["jsonl"] = "jsonl"
    path: FolderPath = Field(examples=["/data/train.jsonl"])
    """The file, as the cluster's machines see it."""


class ParquetSource(_Source):
    """A Parquet file, or a folder of them in the order of their names."""

    kind: Literal["parquet"] = "parquet"
    path: FolderPath = Field(examples=["/data/train.parquet"])
    """The file or folder, as the cluster's machines see it."""


class HubSource(_Source):
    """A dataset of the Hugging Face hub by its name, or a folder in the hub's layout."""

    kind: Literal["hub"] = "hub"
    name: FolderPath = Field(examples=["BytedTsinghua-SIA/DAPO-Math-17k"])
    """The dataset's name, or the folder's path."""
    subset: FieldName | None = None
    """The dataset's configuration, where it has several."""
    split: FieldName = "train"
    """The dataset's split."""
    revision: FieldName | None = None
    """Commit, tag or branch of the dataset: give a commit, so that another attempt reads the same rows."""


class HeldOutShare(ConfigModel):
    """A share of the training source's prompts, chosen by a hash of their text and left out of training."""

    kind: Literal["held_out"] = "held_out"
    share_fraction: float = Field(0.05, gt=0, le=0.5)
    """Share of the prompts, at least one."""


SourceConfig = Annotated[JsonlSource | ParquetSource | HubSource, Field(discriminator="kind")]
ValidationSourceConfig = Annotated[HeldOutShare | JsonlSource | ParquetSource | HubSource, Field(discriminator="kind")]
