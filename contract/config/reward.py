"""How a response is scored, and what its length costs."""

from typing import Annotated, Literal

from pydantic import Field, PositiveFloat, StringConstraints

from contract.config.base import ConfigModel, Count

TimeoutS = Annotated[float, Field(gt=0, le=600)]


class ExactReward(ConfigModel):
    """1 where the text after the last mark equals the answer, spaces around it aside, else 0."""

    kind: Literal["exact"] = "exact"
    mark: Annotated[str, StringConstraints(min_length=1, max_length=100, pattern=r"^[^\x00]*$")] = "####"
    """What stands before the answer in a response."""


class _ProcessReward(ConfigModel):
    """A reward that is computed in processes of its own, so that it can neither hang nor end the run.

    One that raises, is not back in time or gives no finite number counts as a failure, and its response gets 0.
    """

    kind: str
    timeout_s: TimeoutS = 10.0
    """Time for one response; longer is a failure."""
    num_processes: Annotated[Count, Field(le=256)] = 4
    """Processes that score side by side, on the driver's machine."""


class MathReward(_ProcessReward):
    """1 where the last \\boxed{} or the text after the last `Answer:` is mathematically equal to the answer, else 0;
    judged by math-verify."""

    kind: Literal["math"] = "math"


class CodeReward(_ProcessReward):
    """1 where the last Python code block of a response passes the tests of its row, else 0; it runs in a sandbox."""

    kind: Literal["code"] = "code"
    memory_mib: Annotated[Count, Field(ge=64)] = 512
    """Memory of the program; more is refused to it."""
    partial_credit: bool = False
    """The share of tests that pass, in place of 1 for all and 0 for less."""


class PythonReward(_ProcessReward):
    """A function of your own, called with prompt, response and answer by name; it gives a number."""

    kind: Literal["python"] = "python"
    function: Annotated[
        str, StringConstraints(max_length=300, pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*$")
    ] = Field(examples=["my_rewards.brevity:reward"])
    """Its place as module:function. The cluster's registration must allow the module."""


RewardConfig = Annotated[ExactReward | MathReward | CodeReward | PythonReward, Field(discriminator="kind")]


class ZeroOverlong(ConfigModel):
    """A response that is cut at max_new_tokens gets 0 and is not scored."""

    kind: Literal["zero"] = "zero"


class ScoredOverlong(ConfigModel):
    """A response that is cut is scored as any other."""

    kind: Literal["scored"] = "scored"


class PenalisedOverlong(ConfigModel):
    """Every response is scored; in the last stretch before max_new_tokens a penalty grows from 0 to its whole
    (DAPO's soft overlong punishment, arXiv:2503.14476, equation 13)."""

    kind: Literal["penalised"] = "penalised"
    buffer_tokens: Count = 4096
    """Length of that stretch."""
    penalty: PositiveFloat = 1.0
    """Taken off the reward of a response that fills it."""


OverlongConfig = Annotated[ZeroOverlong | ScoredOverlong | PenalisedOverlong, Field(discriminator="kind")]
