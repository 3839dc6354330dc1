"""Receivers with real sockets on this machine."""

import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


class Server:
    """Remembers what it was sent; `answers` are given in turn, the last one again and again."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.requests: list[tuple[str, dict[str, str], bytes]] = []
        self.answers: list[tuple[int, dict[str, str], bytes]] = [(204, {}, b"")]
        self.connections = 0
        self.before_answer: Callable[[], object] = lambda: None


@contextmanager
def serving(host: str = "127.0.0.1", context: ssl.SSLContext | None = None, port: int = 0) -> Iterator[Server]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            told.requests.append((self.path, {name.lower(): value for name, value in self.headers.items()}, body))
            told.before_answer()
            status, headers, answer = told.answers.pop(0) if len(told.answers) > 1 else told.answers[0]
            self.send_response(status)
            for name, value in {"Content-Length": str(len(answer)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer)

        do_GET = do_POST

        def log_message(self, *_):
            pass

    class Listener(ThreadingHTTPServer):
        daemon_threads = True

        def get_request(self):
            accepted = super().get_request()
            told.connections += 1
            return accepted

        def finish_request(self, request, client_address):
            if context is not None:
                try:
                    request = context.wrap_socket(request, server_side=True)
                except OSError:
                    return
            super().finish_request(request, client_address)
            request.close()

        def handle_error(self, *_):
            pass

    with Listener((host, port), Handler) as listener:
        told = Server(listener.server_address[1])
        thread = threading.Thread(target=listener.serve_forever, args=(0.01,))
        thread.start()
        yield told
        listener.shutdown()
        thread.join()


def certificate_for(folder: Path, *names: str) -> tuple[Path, Path]:
    """(certificate, its key), self-signed for these names and addresses."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
    is_number = [name[0].isdigit() for name in names]
    alternatives = [
        x509.IPAddress(ip_address(name)) if number else x509.DNSName(name)
        for name, number in zip(names, is_number, strict=True)
    ]
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    paths = folder / "certificate.pem", folder / "key.pem"
    paths[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    paths[1].write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return paths
