"""What a check of a cluster crosses the wire: the control plane submits a job, and reads one line of its output."""

from pydantic import BaseModel, ConfigDict, ValidationError

CHECK_VARIABLE = "FOREDECK_CLUSTER_CHECK"
"""Environment variable that carries a CheckOrder as JSON."""
_MARK = "FOREDECK_CLUSTER_CHECK "


class CheckOrder(BaseModel):
    """What is to be looked at, as the cluster's registration has it."""

    model_config = ConfigDict(frozen=True)

    api_url: str
    storage_dir: str
    reward_modules: list[str] = []


class Finding(BaseModel):
    """One thing that was looked at."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    name: str
    """What: `storage_dir`, `api_url`, a package, ..."""
    is_ok: bool
    detail: str
    """What was found, and the mend where it is not as it should be."""


class CheckReport(BaseModel):
    """All findings of a check."""

    model_config = ConfigDict(frozen=True)

    findings: list[Finding]

    def line(self) -> str:
        """As the job prints it."""
        return _MARK + self.model_dump_json()


def report_in(lines: list[str]) -> CheckReport | None:
    """The report among a job's output; None where it never came to one."""
    for line in reversed(lines):
        if line.startswith(_MARK):
            try:
                return CheckReport.model_validate_json(line.removeprefix(_MARK))
            except ValidationError:
                return None
    return None
