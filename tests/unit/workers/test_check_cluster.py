"""What follows from the machines' answers; tests/integration/backend/launcher has a real job on a real Ray."""

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.metadata import version

import pytest

from contract.cluster_check import CheckOrder, CheckReport, Finding, report_in
from workers.check_cluster import NodeReport, find_rewards, findings, installed_versions, reach_api, unpacked_version

ORDER = CheckOrder(api_url="http://api", storage_dir="/mnt/shared")
VERSIONS = {"python": "3.11.9", "foredeck": "0.1.0", "ray": "2.60.0", "torch": "2.11.0", "vllm": "0.33.0"}
FIRST = NodeReport("10.0.0.1", VERSIONS, ("H200",) * 8, sees_marker=True)


def _found(*nodes, num_nodes=None):
    return {finding.name: finding for finding in findings(ORDER, list(nodes), num_nodes or len(nodes))}


def test_machines_that_agree():
    found = _found(FIRST, NodeReport("10.0.0.2", VERSIONS, (), sees_marker=True))
    assert [finding.name for finding in found.values() if not finding.is_ok] == []
    assert found["nodes"].detail == "2 of 2 answered"
    assert found["packages"].detail == "python 3.11.9, vllm 0.33.0"
    assert found["gpus"].detail == "10.0.0.1: 8 x H200"


def test_what_differs_or_is_missing_is_told_with_its_mend():
    old = VERSIONS | {"ray": "2.50.0"}
    del old["torch"]
    found = _found(FIRST, NodeReport("10.0.0.2", old, (), sees_marker=False), num_nodes=3)
    assert {finding.name for finding in found.values() if not finding.is_ok} == {"nodes", "ray", "torch", "storage_dir"}
    assert found["ray"].detail == "2.50.0, 2.60.0: must be installed on all machines, in one version"
    assert found["torch"].detail.startswith("2.11.0, none:")
    assert found["storage_dir"].detail == ("/mnt/shared: is not shared with 10.0.0.2: mount one folder on all machines")


def test_the_versions_that_are_installed_here():
    versions = installed_versions()
    assert versions["ray"] == "2.60.0"
    assert "no-such-package" not in versions


def test_modules_are_found_and_not_imported():
    found = find_rewards(["this", "workers.data", "workers.nowhere", "nowhere.at.all"])
    assert [finding.is_ok for finding in found] == [True, True, False, False]
    assert "this" not in __import__("sys").modules


@pytest.fixture
def api():
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200 if self.path == "/api/v1/health" else 404)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_the_way_to_the_service(api):
    assert reach_api(f"{api}/") == Finding(name="api_url", is_ok=True, detail=f"{api}/ answers")
    assert not reach_api(f"{api}/elsewhere").is_ok
    assert "mend api_url or the network" in reach_api("http://127.0.0.1:1").detail


def test_the_report_is_found_among_what_a_job_prints():
    report = CheckReport(findings=[Finding(name="ray", is_ok=True, detail="2.60.0")])
    assert report_in(["INFO connected", report.line(), "bye"]) == report
    assert report_in(["INFO connected"]) is None
    assert report_in(["FOREDECK_CLUSTER_CHECK {"]) is None


def test_an_unpacked_archive_has_a_version_too():
    assert unpacked_version() == version("foredeck")
