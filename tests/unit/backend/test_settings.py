import re

import pytest
from pydantic import ValidationError

from backend.settings import REPOSITORY, Settings, database_url, load

DOCUMENT = REPOSITORY / "docs" / "operations" / "settings.md"
MINIMUM = {"DATABASE_URL": "postgresql://u:p@h/d"}


def documented():
    rows = re.findall(r"^\| `([A-Z_]+)` \| (.+?) \|", DOCUMENT.read_text(), re.MULTILINE)
    return dict(rows)


def test_every_setting_is_documented_and_nothing_else_is():
    assert documented().keys() == {field.alias for field in Settings.model_fields.values()}


def test_documented_defaults_are_the_defaults():
    """Where the table gives a value; where it gives words, a value would not say it."""
    defaults = {field.alias: str(field.default) for field in Settings.model_fields.values()}
    values = {name: match[1] for name, text in documented().items() if (match := re.fullmatch("`([^`]+)`", text))}
    assert len(values) > 15
    for name, value in values.items():
        is_number = re.fullmatch(r"[\d.]+", value)
        assert float(value) == float(defaults[name]) if is_number else value in {defaults[name], "FOREDECK_PUBLIC_URL"}


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg"])
def test_any_postgresql_url_gets_the_driver(scheme):
    environment = {"DATABASE_URL": f"{scheme}://u:p@h:1/d"}
    assert load(environment).database_url == database_url(environment) == "postgresql+psycopg://u:p@h:1/d"


def test_an_empty_variable_counts_as_unset():
    assert load({**MINIMUM, "RAY_ADDRESS": "", "FOREDECK_LEASE_S": ""}) == load(MINIMUM)


def test_folders_are_expanded_and_derived():
    settings = load({**MINIMUM, "FOREDECK_HOME": "~/x"})
    assert settings.home.is_absolute()
    assert settings.local_storage_dir == settings.home / "storage"
    assert load({**MINIMUM, "FOREDECK_STORAGE_DIR": "/s"}).local_storage_dir.as_posix() == "/s"
    assert settings.local_api_url == "http://127.0.0.1:8600"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DATABASE_URL", "mysql://h/d"),
        ("DATABASE_URL", "nonsense"),
        ("FOREDECK_PUBLIC_URL", "foredeck.example"),
        ("FOREDECK_LEASE_S", "0"),
        ("FOREDECK_LEASE_S", "soon"),
        ("FOREDECK_LOG_LEVEL", "loud"),
        ("FOREDECK_MAX_CONCURRENT_RUNS", "-1"),
        ("RAY_ADDRESS", "ray://head:10001"),
        ("FOREDECK_OIDC_ISSUER", "http://id.example.org"),
        ("FOREDECK_OIDC_ISSUER", "http://127.0.0.1.evil.example"),
        ("FOREDECK_OIDC_ISSUER", "id.example.org"),
        ("FOREDECK_OIDC_ADMIN_CLAIM", "foredeck-admins"),
        ("FOREDECK_OIDC_ADMIN_CLAIM", "groups:"),
        ("FOREDECK_OIDC_DEFAULT_ROLE", "owner"),
        ("FOREDECK_WEBHOOK_ALLOWED_NETWORKS", "10.0.0.1/8"),
        ("FOREDECK_WEBHOOK_ALLOWED_NETWORKS", "intranet"),
        ("FOREDECK_ENCRYPTION_KEYS", "hunter5"),
    ],
)
def test_a_bad_value_is_named(name, value):
    with pytest.raises(ValidationError, match=name):
        load({**MINIMUM, name: value})


def test_networks_and_keys_are_listed_with_commas():
    keys = [n * 42 + "A=" for n in "ab"]
    settings = load(
        {
            **MINIMUM,
            "FOREDECK_WEBHOOK_ALLOWED_NETWORKS": "10.1.0.0/16, fd00::/8",
            "FOREDECK_ENCRYPTION_KEYS": ",".join(keys),
        }
    )
    assert [str(network) for network in settings.webhook_allowed_networks] == ["10.1.0.0/16", "fd00::/8"]
    assert settings.encryption_keys == tuple(keys)


def test_what_is_missing_is_named():
    with pytest.raises(ValidationError, match="DATABASE_URL"):
        load({})
    with pytest.raises(RuntimeError, match="DATABASE_URL"):
        database_url({})


def test_a_lease_must_outlast_a_call_to_ray():
    with pytest.raises(ValidationError, match="FOREDECK_RAY_TIMEOUT_S"):
        load({**MINIMUM, "FOREDECK_LEASE_S": "10", "FOREDECK_RAY_TIMEOUT_S": "6"})


def test_secrets_are_not_shown():
    settings = load(
        {
            "DATABASE_URL": "postgresql://u:hunter2@h/d",
            "REDIS_URL": "redis://:hunter3@h",
            "FOREDECK_RAY_TOKEN": "hunter4",
            "FOREDECK_ENCRYPTION_KEYS": "hunter5" + 36 * "A" + "=",
        }
    )
    assert "hunter" not in repr(settings)
    assert "hunter" not in str(settings)
