"""A Ray that has everything but our code, which its registration brings: archives over https, packages by pip.

The interpreter of this Ray is small, for Ray copies it for every set of packages; it finds libraries beside itself.
"""

import ssl
import sys
import sysconfig
import threading
import time
import venv
import zipfile
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from backend.embedded.home import Home
from backend.embedded.passwords import kept_password
from backend.embedded.ports import Ports
from backend.embedded.ray import RayService
from backend.settings import REPOSITORY
from tests.integration.backend.launcher.servers import running, serving
from tests.ports import free_base_port

NAMES = ("pip", "no-package", "no-archive")
WHEEL = "our_rewards-1.0-py3-none-any.whl"


@dataclass(frozen=True)
class BareRay(RayService):
    """With an interpreter of its own, and without our code."""

    python: str = ""
    certificate: str = ""
    index: str = ""

    def argv(self, agent_port: int, client_port: int) -> list[str]:
        return [self.python, *super().argv(agent_port, client_port)[1:]]

    def environment(self) -> dict[str, str]:
        trusted = dict.fromkeys(("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "PIP_CERT"), self.certificate)
        own = {"PIP_CONFIG_FILE": "/dev/null", "PIP_INDEX_URL": self.index, "PIP_FIND_LINKS": "", "PYTHONPATH": ""}
        return super().environment() | trusted | own


@pytest.fixture(scope="module")
def archives(tmp_path_factory):
    """(address, certificate) of a server with our code as it is now and one small package."""
    folder = tmp_path_factory.mktemp("archives")
    with zipfile.ZipFile(folder / "foredeck.zip", "w") as archive:
        archive.write(REPOSITORY / "pyproject.toml", "pyproject.toml")
        for package in ("contract", "workers"):
            for path in (REPOSITORY / package).rglob("*"):
                if path.suffix in (".py", ".c"):
                    archive.write(path, path.relative_to(REPOSITORY))
    with zipfile.ZipFile(folder / WHEEL, "w") as wheel:
        wheel.writestr("our_rewards.py", "")
        info = "our_rewards-1.0.dist-info"
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: our-rewards\nVersion: 1.0\n")
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{info}/RECORD", f"our_rewards.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")
    certificate = write_certificate(tmp_path_factory.mktemp("certificate") / "server.pem")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"https://localhost:{server.server_address[1]}", str(certificate)
    server.shutdown()
    server.server_close()
    thread.join()


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def write_certificate(path: Path) -> Path:
    """One that signs itself, with its key."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now - timedelta(hours=1)).not_valid_after(now + timedelta(days=1))
    names = x509.SubjectAlternativeName([x509.DNSName("localhost")])
    certificate = builder.add_extension(names, critical=False).sign(key, hashes.SHA256())
    own = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path.write_bytes(own + certificate.public_bytes(serialization.Encoding.PEM))
    return path


@pytest.fixture(scope="module")
def ray(tmp_path_factory, archives):
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder / "python", symlinks=True)
    packages = folder / "python" / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    (packages / "libraries.pth").write_text(sysconfig.get_paths()["purelib"])
    home = Home(folder / "home")
    home.create()
    python, (address, certificate) = str(folder / "python" / "bin" / "python"), archives
    ours = {"python": python, "certificate": certificate, "index": f"{address}/simple"}
    with running(BareRay(home, Ports(free_base_port()), folder, **ours)) as service:
        yield service


@pytest.fixture
def app(ray, settings, tmp_path):
    """The service with the clusters' token."""
    tokens = tmp_path / "tokens"
    tokens.mkdir()
    for name in (*NAMES, "archives"):
        (tokens / name).write_text(kept_password(ray.token_path))
    with serving(settings, ray_tokens_dir=tokens) as app:
        yield app


@pytest.fixture
def register(app, client, ray, tmp_path):
    def register(name, python="python", **code):
        body = {
            "name": name,
            "python": python,
            "address": ray.address,
            "code": {"kind": "runtime_env", **code},
            "storage_dir": str(tmp_path / "storage"),
            "api_url": app.state.settings.public_url,
            "reward_modules": ["our_rewards"],
        }
        response = client.post("/api/v1/clusters", json=body)
        assert response.status_code == 201, response.text

    return register


@pytest.fixture
def config():
    given = yaml.safe_load((REPOSITORY / "examples" / "smoke.yaml").read_text())["config"]
    given["drafter"] = {"kind": "ngram"}
    given["rollout"]["num_engines"] = given["grpo"]["num_steps"] = 1
    given["policy"]["warm_up"]["num_steps"] = 2
    return given


def wait_for(read, is_there, timeout_s=200):
    deadline = time.monotonic() + timeout_s
    while not is_there(value := read()):
        assert time.monotonic() < deadline, value
        threading.Event().wait(0.1)
    return value


def test_code_is_brought_or_its_absence_explained(client, launch, register, config, archives, ray):
    address, _ = archives
    ours = f"{address}/foredeck.zip"
    register("archives", python=ray.python, working_dir=ours, py_modules=[f"{address}/{WHEEL}"])
    register("pip", working_dir=ours, pip=[f"our-rewards @ {address}/{WHEEL}"])
    register("no-package", working_dir=ours, pip=["our-rewards==2.0"])
    register("no-archive", working_dir=f"{address}/gone.zip")
    runs = {name: launch(name=name, cluster=name, config=config, max_attempts=1)["id"] for name in NAMES}
    started = client.post("/api/v1/clusters/archives/checks")
    check = wait_for(lambda: client.get(started.headers["location"]).json(), has_ended)
    assert (check["state"], [f["detail"] for f in check["findings"] if not f["is_ok"]]) == ("passed", []), check["log"]
    assert "our_rewards can be imported" in [finding["detail"] for finding in check["findings"]]
    ended = {
        name: wait_for(lambda: client.get(f"/api/v1/runs/{runs[name]}").json(), lambda run: run["is_ended"])  # noqa: B023
        for name in runs
    }
    assert ended["pip"]["status"] == "succeeded", ended["pip"]["status_reason"]
    reasons = {
        "no-package": "Could not find a version that satisfies the requirement our-rewards==2.0",
        "no-archive": f"404 Client Error: File not found for url: {address}/gone.zip",
    }
    for name, reason in reasons.items():
        run = ended[name]
        assert run["status"] == "failed"
        assert run["status_reason"].startswith("The Ray job failed: what the cluster's code names could not be set up:")
        assert reason in run["status_reason"]
        log = [line["message"] for line in client.get(f"/api/v1/runs/{run['id']}/logs").json()["items"]]
        assert any("Traceback" in line for line in log)


def has_ended(check):
    return check["state"] in ("passed", "failed")
