"""How our code and what it needs come to a cluster's machines: chosen at registration, never by a run."""

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, StringConstraints, TypeAdapter, model_validator

from backend.auth.schemas import Request

_SCHEMES = ("https", "s3", "gs")
_ENDINGS = (".zip", ".whl")
_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]*(\[[A-Za-z0-9._,-]+\])?"
_PINNED = re.compile(rf"{_NAME}(==[A-Za-z0-9.!+_-]+| @ https://[^\s@]+)")
_OPTION = re.compile(r"--[a-z][a-z-]*(=[\w.,:/=@%+-]+)?")
_SETUP_TIMEOUT_S = 3600
"""Ray gives up after 600 s, which is less than several GB of CUDA's libraries may take on their way."""
_SO_THAT = ": a run that is resumed must find what it began with"
_IMAGE = re.compile(r"[a-z0-9][a-z0-9._:/-]*(:(?P<tag>[\w][\w.-]*)|@sha256:[0-9a-f]{64})")


def _archive(address: str) -> str:
    parts = urlsplit(address)
    if parts.scheme not in _SCHEMES or not parts.hostname or "@" in parts.netloc:
        raise ValueError(f"must be an address that every machine of the cluster can read: {', '.join(_SCHEMES)}")
    if not parts.path.endswith(_ENDINGS) or parts.query or parts.fragment:
        raise ValueError(f"must end in {' or '.join(_ENDINGS)}: Ray takes archives")
    return address


def _pinned(requirement: str) -> str:
    if not _PINNED.fullmatch(requirement):
        raise ValueError(f"must be one package with its exact version, as in torch==2.11.0{_SO_THAT}")
    return requirement


def _image(image: str) -> str:
    match = _IMAGE.fullmatch(image)
    if match is None or match["tag"] == "latest":
        raise ValueError(f"must name an image with its digest or a tag other than latest{_SO_THAT}")
    return image


def _option(option: str) -> str:
    if not _OPTION.fullmatch(option):
        raise ValueError("must be one option of podman run in the form --name or --name=value")
    return option


Text = Annotated[str, StringConstraints(min_length=1, max_length=500, pattern=r"^[^\x00-\x1f\x7f]+$")]
Archive = Annotated[Text, AfterValidator(_archive)]
Requirement = Annotated[Text, AfterValidator(_pinned)]
Image = Annotated[Text, AfterValidator(_image)]
Option = Annotated[Text, AfterValidator(_option)]


_CONFIG = {"config": {"setup_timeout_seconds": _SETUP_TIMEOUT_S}}


class InstalledCode(Request):
    """The interpreter `python` has everything already."""

    kind: Literal["installed"] = "installed"

    def runtime_env(self, writable: Sequence[str] = (), readable: Sequence[str] = ()) -> dict[str, Any]:
        """What Ray is told with every job. writable, readable: folders of the machine that a job needs."""
        return {}


class RuntimeEnvCode(Request):
    """Ray fetches archives and installs pinned packages on each machine, beside what its own interpreter has."""

    kind: Literal["runtime_env"] = "runtime_env"
    working_dir: Archive | None = Field(None, examples=["s3://builds/foredeck-0.1.0.zip"])
    """Archive that the job runs in: this repository, or what holds its packages."""
    py_modules: list[Archive] = Field([], max_length=50, examples=[["https://builds.example.org/our_rewards.whl"]])
    """Further archives that can be imported."""
    pip: list[Requirement] = Field([], max_length=200, examples=[["torch==2.11.0", "vllm==0.33.0"]])
    """Packages with exact versions."""

    @model_validator(mode="after")
    def _check_there_is_something(self) -> "RuntimeEnvCode":
        if not (self.working_dir or self.py_modules or self.pip):
            raise ValueError("must name a working_dir, py_modules or pip: it is how the workers package gets there")
        return self

    def runtime_env(self, writable: Sequence[str] = (), readable: Sequence[str] = ()) -> dict[str, Any]:
        return self.model_dump(exclude={"kind"}, exclude_defaults=True) | _CONFIG


class ContainerCode(Request):
    """Every process of a run is in a container of this image; the machines need podman."""

    kind: Literal["container"] = "container"
    image: Image = Field(examples=["registry.example.org/foredeck:0.1.0"])
    """With the workers package in the image's interpreter `python`, and the cluster's version of Ray."""
    options: list[Option] = Field([], max_length=50, examples=[["--device=nvidia.com/gpu=all"]])
    """Options of `podman run` beside Ray's own, as GPUs need them. The folders storage_dir and data_dirs are in every
    container by themselves, the latter for reading."""

    def runtime_env(self, writable: Sequence[str] = (), readable: Sequence[str] = ()) -> dict[str, Any]:
        """Ray makes a shell command of it. Its newer `image_uri` takes an image and nothing else, no folders either."""
        folders = [f"{path}:{path}" for path in writable]
        folders += [f"{path}:{path}:ro" for path in readable if path not in writable]
        mounts = [f"--volume={shlex.quote(folder)}" for folder in folders]
        return {"container": {"image": self.image, "run_options": ["--rm", *mounts, *self.options]}} | _CONFIG


ClusterCode = Annotated[InstalledCode | RuntimeEnvCode | ContainerCode, Field(discriminator="kind")]

_ADAPTER: TypeAdapter[InstalledCode | RuntimeEnvCode | ContainerCode] = TypeAdapter(ClusterCode)


def stored(code: dict[str, Any]) -> InstalledCode | RuntimeEnvCode | ContainerCode:
    """As a cluster's row has it."""
    return _ADAPTER.validate_python(code)


def wrong_python(python: str, code: Mapping[str, Any]) -> str | None:
    """What is wrong with the interpreter for this code, if anything."""
    has_its_own = code["kind"] == "container" or code.get("pip")
    if not has_its_own or python == "python":
        return None
    what = "a container" if code["kind"] == "container" else "pip"
    return f"python = {python} must be `python` with code of {what}, which brings an interpreter of its own"
