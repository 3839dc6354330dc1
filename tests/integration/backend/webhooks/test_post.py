"""Requests over real sockets: a receiver on this machine stands for what must not be reached, and for what may be."""

import socket
import ssl
import threading
import time
from ipaddress import ip_address, ip_network

import pytest

from backend.webhooks.post import MAX_ANSWER_BYTES, UndeliveredError, post
from backend.webhooks.receiver import parse
from backend.webhooks.resolve import RefusedAddressError, addresses_of, resolve
from tests.integration.backend.webhooks.servers import certificate_for, serving
from tests.ports import free_base_port

HERE = [ip_address("127.0.0.1")]
ALLOWED = (ip_network("127.0.0.0/8"),)


def soon(seconds=20.0):
    return time.monotonic() + seconds


@pytest.fixture
def server():
    with serving() as server:
        yield server


@pytest.fixture
def raw():
    """A listening socket, served by hand in a thread."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threads = []

        def serve(handle):
            def run():
                connection, _ = listener.accept()
                with connection:
                    handle(connection)

            threads.append(threading.Thread(target=run))
            threads[-1].start()
            return listener.getsockname()[1]

        yield serve
        for thread in threads:
            thread.join(30)


def test_the_request_is_what_was_signed(server):
    server.answers = [(202, {"Retry-After": "7"}, b"thanks")]
    receiver = parse(f"http://hook.example:{server.port}/in?x=1")
    answer = post(receiver, HERE, {"webhook-id": "msg_1"}, b'{"a":1}', soon())
    assert (answer.status, answer.retry_after, answer.start) == (202, "7", b"thanks")
    ((path, headers, body),) = server.requests
    assert (path, body) == ("/in?x=1", b'{"a":1}')
    assert headers["host"] == f"hook.example:{server.port}"
    assert (headers["webhook-id"], headers["content-type"]) == ("msg_1", "application/json")
    assert "authorization" not in headers


def test_a_redirect_is_an_answer_and_is_not_followed(server):
    with serving() as metadata:
        for status in (301, 302, 303, 307, 308):
            server.answers = [(status, {"Location": f"http://127.0.0.1:{metadata.port}/latest/meta-data/"}, b"")]
            receiver = parse(f"http://hook.example:{server.port}/")
            assert post(receiver, HERE, {}, b"{}", soon()).status == status
        assert (len(server.requests), metadata.connections) == (5, 0)


def test_a_proxy_of_the_environment_sees_nothing(server, monkeypatch):
    with serving() as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        assert post(parse(f"http://hook.example:{server.port}/"), HERE, {}, b"{}", soon()).status == 204
        assert proxy.connections == 0


def test_the_connection_goes_to_the_checked_address_whatever_the_name_says_now(server):
    """`localhost` is another machine by the time of the check, and this one a moment later."""
    with serving("127.0.0.2") as checked:
        receiver = parse(f"http://localhost:{checked.port}/")
        assert post(receiver, [ip_address("127.0.0.2")], {}, b"{}", soon()).status == 204
        assert (checked.connections, server.connections) == (1, 0)


def test_rebinding_finds_nothing(server):
    """A name that is public when it is looked at and loopback ever after is asked once a delivery, not twice."""
    answers = [["8.8.8.8"], ["127.0.0.1"]]

    def rebinding(_host, _timeout_s):
        return [ip_address(text) for text in (answers.pop(0) if len(answers) > 1 else answers[0])]

    receiver = parse(f"https://hook.example:{server.port}/")
    assert addresses_of(receiver, (), rebinding, 1) == [ip_address("8.8.8.8")]  # what is connected to
    with pytest.raises(RefusedAddressError, match="resolves to an address inside"):
        addresses_of(receiver, (), rebinding, 1)
    assert server.connections == 0


@pytest.mark.parametrize("bad", ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "::ffff:10.0.0.1", "fd00::1"])
def test_one_bad_address_of_several_is_enough(bad):
    receiver = parse("https://hook.example/")
    with pytest.raises(RefusedAddressError, match="FOREDECK_WEBHOOK_ALLOWED_NETWORKS") as refused:
        addresses_of(receiver, (), lambda *_: [ip_address("8.8.8.8"), ip_address(bad)], 1)
    assert bad not in str(refused.value)


@pytest.mark.parametrize(
    "host", ["localhost", "127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]", "0.0.0.0"]
)
def test_this_machine_is_refused_by_every_name(server, host):
    with pytest.raises(RefusedAddressError):
        addresses_of(parse(f"https://{host}:{server.port}/"), (), resolve, 5)
    assert server.connections == 0


def test_plain_http_is_for_allowed_networks():
    assert addresses_of(parse("http://localhost:8080/"), (*ALLOWED, ip_network("::1/128")), resolve, 5)
    with pytest.raises(RefusedAddressError, match="must begin with https://"):
        addresses_of(parse("http://hook.example/"), ALLOWED, lambda *_: [ip_address("8.8.8.8")], 1)


def test_the_next_address_is_tried_where_one_does_not_answer(server):
    receiver = parse(f"http://hook.example:{server.port}/")
    assert post(receiver, [ip_address("127.0.0.3"), *HERE], {}, b"{}", soon()).status == 204


def test_nobody_there_is_said_in_words():
    port = free_base_port()
    with pytest.raises(UndeliveredError, match=f"no answer from http://hook.example:{port}: .*refused"):
        post(parse(f"http://hook.example:{port}/secret-path"), HERE, {}, b"{}", soon())


def test_silence_ends_at_the_deadline(raw):
    is_over = threading.Event()
    port = raw(lambda _: is_over.wait(30))
    begin = time.monotonic()
    with pytest.raises(UndeliveredError, match="no whole answer"):
        post(parse(f"http://hook.example:{port}/"), HERE, {}, b"{}", soon(0.3))
    is_over.set()
    assert time.monotonic() - begin < 5


def test_an_answer_that_trickles_ends_at_the_deadline(raw):
    is_over = threading.Event()

    def trickle(connection):
        try:
            connection.sendall(b"HTTP/1.1 200 OK\r\n")
            while not is_over.wait(0.02):
                connection.sendall(b"X: y\r\n")
        except OSError:
            pass  # at the deadline the other end is closed

    port = raw(trickle)
    with pytest.raises(UndeliveredError, match="no whole answer"):
        post(parse(f"http://hook.example:{port}/"), HERE, {}, b"{}", soon(0.4))
    is_over.set()


def test_of_an_endless_answer_only_the_beginning_is_read(raw):
    def pour(connection):
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        try:
            while True:
                connection.sendall(b"a" * 65_536)
        except OSError:
            pass

    answer = post(parse(f"http://hook.example:{raw(pour)}/"), HERE, {}, b"{}", soon())
    assert answer.start == b"a" * MAX_ANSWER_BYTES


@pytest.mark.parametrize(
    "answer", [b"SSH-2.0-OpenSSH_9.6\r\n", b"-ERR unknown command\r\n", b"", b"HTTP/1.1 99 X\r\n\r\n"]
)
def test_what_is_no_http_is_no_answer(raw, answer):
    def say(connection):
        connection.recv(65_536)
        connection.sendall(answer)

    with pytest.raises(UndeliveredError, match="no answer from"):
        post(parse(f"http://hook.example:{raw(say)}/"), HERE, {}, b"{}", soon())


@pytest.fixture
def tls(tmp_path):
    """A receiver with a certificate for hook.example, and a client that trusts its authority."""
    certificate, key = certificate_for(tmp_path, "hook.example", "127.0.0.1")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    asked = []
    context.sni_callback = lambda _socket, name, _context: asked.append(name)
    with serving(context=context) as server:
        yield server, asked, lambda: ssl.create_default_context(cafile=certificate)


def test_tls_asks_for_the_names_certificate(tls):
    server, asked, context = tls
    receiver = parse(f"https://hook.example:{server.port}/")
    assert post(receiver, HERE, {}, b"{}", soon(), context).status == 204
    assert asked == ["hook.example"]
    assert server.requests[0][1]["host"] == f"hook.example:{server.port}"
    assert post(parse(f"https://127.0.0.1:{server.port}/"), HERE, {}, b"{}", soon(), context).status == 204


def test_a_certificate_of_another_name_or_authority_is_refused(tls):
    server, _, context = tls
    with pytest.raises(UndeliveredError, match=r"certificate is not valid for 'other\.example'"):
        post(parse(f"https://other.example:{server.port}/"), HERE, {}, b"{}", soon(), context)
    with pytest.raises(UndeliveredError, match="self-signed certificate"):
        post(parse(f"https://hook.example:{server.port}/"), HERE, {}, b"{}", soon())
    assert server.requests == []


def test_a_plain_receiver_is_no_tls_receiver(server):
    with pytest.raises(UndeliveredError, match="no answer"):
        post(parse(f"https://hook.example:{server.port}/"), HERE, {}, b"{}", soon())
    assert server.requests == []
