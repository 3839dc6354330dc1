import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.webhooks.receiver import parse


@pytest.mark.parametrize(
    ("url", "host", "port", "target", "authority"),
    [
        ("https://hook.example", "hook.example", 443, "/", "hook.example"),
        ("HTTPS://Hook.Example:443/A?b=c", "hook.example", 443, "/A?b=c", "hook.example"),
        ("http://build_box:8080/x", "build_box", 8080, "/x", "build_box:8080"),
        ("https://8.8.8.8/@x", "8.8.8.8", 443, "/@x", "8.8.8.8"),
        ("https://[2606:4700:0::1111]:8443/", "2606:4700::1111", 8443, "/", "[2606:4700::1111]:8443"),
        ("https://xn--mnchen-3ya.example/", "xn--mnchen-3ya.example", 443, "/", "xn--mnchen-3ya.example"),
        ("https://0x7f.example/", "0x7f.example", 443, "/", "0x7f.example"),
    ],
)
def test_a_url_is_taken_apart(url, host, port, target, authority):
    receiver = parse(url)
    assert (receiver.host, receiver.port, receiver.target) == (host, port, target)
    assert receiver.authority == authority
    assert receiver.origin == f"{receiver.scheme}://{authority}"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "hook.example",
        "//hook.example/",
        "ftp://hook.example/",
        "file:///etc/passwd",
        "gopher://127.0.0.1:6379/_FLUSHALL",
        "https:///x",
        "https://hook.example?x=1",
        "https://hook.example/#x",
        "https://hook.example/a b",
        "https://hook.example/\r\nX-Evil: 1",
        "https://hook.example\\@127.0.0.1/",
        "https://hook.example%2f@127.0.0.1/",
        "https://127.0.0.1%00.hook.example/",
        "https://hook..example/",
        "https://.hook.example/",
        "https://-hook.example/",
        "https://" + "a" * 64 + ".example/",
        "https://" + "a." * 140 + "example/",
        "https://hook.example/" + "a" * 2000,
        "https://[::1/",
        "https://[::1%25eth0]/",
        "https://[1.2.3.4]/",
        "https://[::g]/",
    ],
)
def test_what_is_no_plain_address_is_refused(url):
    with pytest.raises(ValueError, match=r"must|which is no"):
        parse(url)


@pytest.mark.parametrize(
    "host",
    [
        "2130706433",
        "0x7f000001",
        "0x7F.1",
        "0x",
        "017700000001",
        "0177.0.0.1",
        "127.1",
        "127.0.1",
        "127.0.0.01",
        "127.0.0.0x1",
        "127.0.0.1.",
        "256.1.1.1",
        "1.2.3.4.5",
        "hook.example.1",
    ],
)
def test_numbers_have_one_form(host):
    with pytest.raises(ValueError, match="four decimal numbers"):
        parse(f"https://{host}/")


@pytest.mark.parametrize("host", ["localhost.", "hook.example.", "hook.example.."])
def test_a_dot_at_the_end_is_refused(host):
    with pytest.raises(ValueError, match="no dot at the end"):
        parse(f"https://{host}/")


@pytest.mark.parametrize(
    "host", ["①②⑦.⓪.⓪.①", "127。0。0。1", "ⓔxample.com", "hook\u200b.example", "ｌocalhost", "١٢٧.0.0.1"]
)
def test_names_and_numbers_in_disguise_are_refused(host):
    with pytest.raises(ValueError, match="xn-- form"):
        parse(f"https://{host}/")


@pytest.mark.parametrize("userinfo", ["user:hunter2", "user", ":", "127.0.0.1", "hook.example%40"])
def test_user_names_and_passwords_are_refused(userinfo):
    with pytest.raises(ValueError, match="user name") as refused:
        parse(f"https://{userinfo}@hook.example/")
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("port", [0, 22, 25, 81, 1023, 65_536, 99_999])
def test_ports_of_other_services_are_refused(port):
    with pytest.raises(ValueError, match=f"has the port {port}: use 80, 443"):
        parse(f"https://hook.example:{port}/")


@given(st.text(max_size=60) | st.from_regex(r"https?://[\x00-\x7f]{1,40}"))
def test_whatever_is_given_what_comes_out_can_be_sent_to(url):
    try:
        receiver = parse(url)
    except ValueError:
        return
    assert not set(receiver.authority + receiver.target) & set(" \r\n\t\\#\x00")
    assert receiver.target.startswith("/")
    assert parse(receiver.origin + receiver.target) == receiver
