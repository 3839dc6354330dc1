import base64
import hashlib
import hmac

from backend.webhooks.signing import headers, new_secret, sign


def test_the_signature_is_that_of_the_specification():
    """Its published example."""
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    body = b'{"test": 2432232314}'
    signature = sign(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body)
    assert signature == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_with_two_secrets_a_receiver_may_know_either():
    secrets, body = [new_secret(), new_secret()], b"{}"
    sent = headers(secrets, "msg_1", 1_900_000_000, body)
    assert (sent["webhook-id"], sent["webhook-timestamp"]) == ("msg_1", "1900000000")
    signatures = sent["webhook-signature"].split(" ")
    for secret, signature in zip(secrets, signatures, strict=True):
        key = base64.b64decode(secret.removeprefix("whsec_"))
        digest = hmac.new(key, b"msg_1.1900000000.{}", hashlib.sha256).digest()
        assert signature == "v1," + base64.b64encode(digest).decode()


def test_secrets_are_long_and_never_the_same():
    secrets = {new_secret() for _ in range(100)}
    assert len(secrets) == 100
    assert {len(base64.b64decode(secret.removeprefix("whsec_"), validate=True)) for secret in secrets} == {32}
