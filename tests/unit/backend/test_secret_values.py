import pytest

from backend.secret_values import places_of_secrets, redacted

HF = "hf_" + "aB3" * 12


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("token fdk_0a1b2c3d_s3-cr_et!", "token [redacted]!"),
        (f"cloned with {HF}.", "cloned with [redacted]."),
        ("https://me:hunter2@hub.example/x", "https://[redacted]@hub.example/x"),
        ("redis://:hunter2@127.0.0.1:6379/0", "redis://[redacted]@127.0.0.1:6379/0"),
        ("Authorization: Bearer abcdefghijklmnopqrst", "Authorization: [redacted]"),
        ("AKIAABCDEFGHIJKLMNOP", "[redacted]"),
        ("ghp_" + "a" * 36, "[redacted]"),
        ("whsec_MfKQ9r8GKYqrTwjU", "[redacted]"),
    ],
)
def test_secrets_are_taken_out(text, shown):
    assert redacted(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "/models/hf_qwen3_8b_instruct_2507_long_name",
        "https://foredeck.example:8600/api/v1/runs",
        "s3://builds/foredeck.zip",
        "a bearer of good news",
        "task-sk-learn",
        "git@github.com:a/b",
        "2 tokens, 3 rounds: fdk",
    ],
)
def test_what_is_none_stays(text):
    assert redacted(text) == text


def test_places_of_secrets_are_found_at_any_depth():
    config = {"a": [{"b": HF}, "x"], "c": {"d": 3, "e": "x"}}
    assert list(places_of_secrets(config, "/config")) == ["/config/a/0/b"]
