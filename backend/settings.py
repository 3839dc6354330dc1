"""Settings of the control plane, read once from the environment.

Every setting is described in docs/operations/settings.md; a test compares the two.
"""

import os
import re
import sys
from base64 import urlsafe_b64decode
from collections.abc import Mapping
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PositiveFloat,
    PositiveInt,
    model_validator,
)

REPOSITORY = Path(__file__).resolve().parent.parent


def _with_driver(url: str) -> str:
    """Any PostgreSQL URL, with psycopg 3 as its driver."""
    scheme, separator, rest = url.partition("://")
    if not separator or scheme not in {"postgresql", "postgres", "postgresql+psycopg"}:
        raise ValueError("must start with postgresql://, as in postgresql://user:password@127.0.0.1:5432/foredeck")
    return f"postgresql+psycopg://{rest}"


def _without_slash(url: str) -> str:
    if not url.startswith(("http://", "https://")):
        raise ValueError("must start with http:// or https://")
    return url.rstrip("/")


def _issuer(url: str | None) -> str | None:
    """As it is, since ID tokens must name the very same; never in the clear over a network."""
    if url is not None and not re.match(r"https://[^\s/]|http://(127\.0\.0\.1|\[::1\]|localhost)[:/]", url):
        raise ValueError("must start with https://; http:// is for a provider on this machine")
    return url


def _claim(text: str | None) -> str | None:
    if text is not None and not all(text.partition(":")):
        raise ValueError("must look like groups:foredeck-admins")
    return text


def _expanded(path: object) -> object:
    return Path(path).expanduser() if isinstance(path, str) else path


def _listed(names: object) -> Any:
    return tuple(name.strip() for name in names.split(",") if name.strip()) if isinstance(names, str) else names


def _networks(names: object) -> object:
    try:
        return tuple(ip_network(name) for name in _listed(names)) if isinstance(names, str) else names
    except ValueError as error:
        raise ValueError(f"must be networks with commas, as in 10.1.0.0/16,fd00::/8: {error}") from error


def _keys(keys: object) -> object:
    listed = _listed(keys)
    if isinstance(keys, str) and not all(_is_key(key) for key in listed):
        raise ValueError("must be keys of 32 bytes in URL-safe base64, with commas")
    return listed


def _is_key(key: str) -> bool:
    try:
        return len(urlsafe_b64decode(key)) == 32
    except ValueError:
        return False


HttpUrl = Annotated[str, AfterValidator(_without_slash)]
Keys = Annotated[tuple[str, ...], BeforeValidator(_keys)]
Networks = Annotated[tuple[IPv4Network | IPv6Network, ...], BeforeValidator(_networks)]
Modules = Annotated[tuple[str, ...], BeforeValidator(_listed)]
NumRuns = Annotated[int, Field(ge=1, le=10_000)]
Folder = Annotated[Path, BeforeValidator(_expanded)]


def _variable(name: str, default: Any = ..., is_secret: bool = False) -> Any:
    return Field(default, alias=name, validate_default=default is not ..., repr=not is_secret)


class Settings(BaseModel):
    """One field a variable; the alias is the variable's name."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True, hide_input_in_errors=True)

    database_url: Annotated[str, AfterValidator(_with_driver)] = _variable("DATABASE_URL", is_secret=True)
    """PostgreSQL, the one source of truth."""
    redis_url: str = _variable("REDIS_URL", "redis://127.0.0.1:6379/0", is_secret=True)
    """Redis or Valkey: Celery's broker and the wake-up channel of live streams. May be down."""
    home: Folder = _variable("FOREDECK_HOME", "~/.foredeck")
    """Data folder of a one-machine installation."""
    public_url: HttpUrl = _variable("FOREDECK_PUBLIC_URL", "http://127.0.0.1:8600")
    """Address under which browsers reach this service."""
    frontend_dir: Folder = _variable("FOREDECK_FRONTEND_DIR", REPOSITORY / "frontend" / "dist")
    """Folder of the built dashboard."""
    examples_dir: Folder = _variable("FOREDECK_EXAMPLES_DIR", REPOSITORY / "examples")
    """Folder of ready run configurations."""
    log_level: Literal["debug", "info", "warning", "error"] = _variable("FOREDECK_LOG_LEVEL", "info")
    """Least severe log records that are written."""
    log_format: Literal["json", "text"] = _variable("FOREDECK_LOG_FORMAT", "json")
    """One JSON object a line, or text for reading on a terminal."""
    database_pool_size: PositiveInt = _variable("FOREDECK_DATABASE_POOL_SIZE", 10)
    """PostgreSQL connections that one process keeps at most."""

    trusted_proxies: Networks = _variable("FOREDECK_TRUSTED_PROXIES", ())
    """Networks, with commas, of the proxies before this service; only their X-Forwarded-For is believed."""

    rate_limit: PositiveInt = _variable("FOREDECK_RATE_LIMIT", 6000)
    """Requests of one token or session a minute."""
    ingest_rate_limit: PositiveInt = _variable("FOREDECK_INGEST_RATE_LIMIT", 60_000)
    """Batches of events of one run a minute."""
    stranger_rate_limit: PositiveInt = _variable("FOREDECK_STRANGER_RATE_LIMIT", 600)
    """Requests of one address a minute without a valid token or session."""
    login_rate_limit: PositiveInt = _variable("FOREDECK_LOGIN_RATE_LIMIT", 20)
    """Failed logins of one address a minute."""
    max_streams: PositiveInt = _variable("FOREDECK_MAX_STREAMS", 100)
    """Live streams that one token or session may have open at one process."""

    embedded_ray_dir: Folder | None = _variable("FOREDECK_EMBEDDED_RAY_DIR", None)
    """Folder in which the supervisor of this machine's Ray is asked for it; set by `foredeck up`."""
    ray_address: HttpUrl | None = _variable("RAY_ADDRESS", None)
    """Job server of the cluster named `local`, in place of a Ray that `foredeck up` starts."""
    ray_token: str | None = _variable("FOREDECK_RAY_TOKEN", None, is_secret=True)
    """Bearer token of the Ray at RAY_ADDRESS, when it runs with RAY_AUTH_MODE=token; no other address is sent it."""
    ray_tokens_dir: Folder | None = _variable("FOREDECK_RAY_TOKENS_DIR", None)
    """Folder with the Ray tokens of registered clusters: one file each, named like the cluster."""
    cluster_python: str = _variable("FOREDECK_CLUSTER_PYTHON", sys.executable)
    """Python interpreter of the cluster named `local`."""
    cluster_reward_modules: Modules = _variable("FOREDECK_CLUSTER_REWARD_MODULES", ())
    """Python modules that runs on the cluster named `local` may take reward functions from, with commas."""
    cluster_data_dirs: Modules | None = _variable("FOREDECK_CLUSTER_DATA_DIRS", None)
    """Folders from which runs on the cluster named `local` may read models and datasets, with commas; when unset any on
    this machine's own Ray, and none on that of RAY_ADDRESS."""
    storage_dir: Folder | None = _variable("FOREDECK_STORAGE_DIR", None)
    """Shared folder of the cluster named `local`; FOREDECK_HOME/storage when unset."""
    cluster_api_url: HttpUrl | None = _variable("FOREDECK_CLUSTER_API_URL", None)
    """Address under which the cluster named `local` reaches this service; FOREDECK_PUBLIC_URL when unset."""
    max_concurrent_runs: NumRuns = _variable("FOREDECK_MAX_CONCURRENT_RUNS", 1)
    """Runs that the cluster named `local` carries at once."""
    max_concurrent_runs_per_user: NumRuns | None = _variable("FOREDECK_MAX_CONCURRENT_RUNS_PER_USER", None)
    """How many of them may be of one user; all when unset."""
    max_concurrent_runs_per_project: NumRuns | None = _variable("FOREDECK_MAX_CONCURRENT_RUNS_PER_PROJECT", None)
    """How many of them may be of one project; all when unset."""
    max_queued_runs_per_user: PositiveInt = _variable("FOREDECK_MAX_QUEUED_RUNS_PER_USER", 1000)
    """Runs of one user that may wait, on all clusters together; further launches are refused."""
    max_queued_runs_per_project: PositiveInt = _variable("FOREDECK_MAX_QUEUED_RUNS_PER_PROJECT", 5000)
    """Runs of one project that may wait, on all clusters together; further launches are refused."""
    max_sweep_runs: NumRuns = _variable("FOREDECK_MAX_SWEEP_RUNS", 200)
    """Runs that one sweep may have."""

    heartbeat_timeout_s: PositiveFloat = _variable("FOREDECK_HEARTBEAT_TIMEOUT_S", 30.0)
    """A run whose worker has been silent for this long is lost, and Ray is asked about it."""
    reconcile_interval_s: PositiveFloat = _variable("FOREDECK_RECONCILE_INTERVAL_S", 5.0)
    """Time between two looks at all live runs."""
    lease_s: PositiveFloat = _variable("FOREDECK_LEASE_S", 30.0)
    """How long a claimed piece of work stays claimed; afterwards another worker takes it over."""
    ray_timeout_s: PositiveFloat = _variable("FOREDECK_RAY_TIMEOUT_S", 10.0)
    """Longest wait for an answer of a Ray job server; at most half of FOREDECK_LEASE_S."""
    stop_grace_s: PositiveFloat = _variable("FOREDECK_STOP_GRACE_S", 20.0)
    """Time a worker has to stop by itself before Ray ends it."""
    finish_grace_s: PositiveFloat = _variable("FOREDECK_FINISH_GRACE_S", 60.0)
    """After a job has ended well, how long its last events may take to arrive."""
    drain_s: PositiveFloat = _variable("FOREDECK_DRAIN_S", 3600.0)
    """After a run has ended, how long its worker's token still delivers events."""

    oidc_issuer: Annotated[str | None, AfterValidator(_issuer)] = _variable("FOREDECK_OIDC_ISSUER", None)
    """Identity provider through which people log in, exactly as it names itself."""
    oidc_client_id: str | None = _variable("FOREDECK_OIDC_CLIENT_ID", None)
    """This service's name at the identity provider."""
    oidc_client_secret: str | None = _variable("FOREDECK_OIDC_CLIENT_SECRET", None, is_secret=True)
    """Its secret there; a provider that asks for none relies on PKCE alone."""
    oidc_name: str = _variable("FOREDECK_OIDC_NAME", "single sign-on")
    """What the login page calls the identity provider."""
    oidc_email_domains: Modules = _variable("FOREDECK_OIDC_EMAIL_DOMAINS", ())
    """Domains of verified addresses whose owners become users at their first login, with commas; `*` for whoever the
    provider lets in. When empty, only users that are linked to their subject get in."""
    oidc_default_project: str = _variable("FOREDECK_OIDC_DEFAULT_PROJECT", "default")
    """Project in which new users get a role."""
    oidc_default_role: Literal["none", "viewer", "launcher", "admin"] = _variable(
        "FOREDECK_OIDC_DEFAULT_ROLE", "viewer"
    )
    """Role of new users there."""
    oidc_admin_claim: Annotated[str | None, AfterValidator(_claim)] = _variable("FOREDECK_OIDC_ADMIN_CLAIM", None)
    """Claim and value, as in groups:foredeck-admins, that make an administrator of everything; without them a user is
    none from the next login on. When unset, the provider has no say in it."""

    body_timeout_s: PositiveFloat = _variable("FOREDECK_BODY_TIMEOUT_S", 60.0)
    """A request whose body has not come within this time is refused (408)."""
    session_lifetime_s: PositiveInt = _variable("FOREDECK_SESSION_LIFETIME_S", 30 * 24 * 3600)
    """A browser stays logged in for this long."""
    login_link_lifetime_s: PositiveInt = _variable("FOREDECK_LOGIN_LINK_LIFETIME_S", 15 * 60)
    """A one-time login link is good for this long."""

    encryption_keys: Keys = _variable("FOREDECK_ENCRYPTION_KEYS", (), is_secret=True)
    """Keys that encrypt the secrets of webhooks in the database, with commas: the first encrypts, all decrypt."""
    webhook_allowed_networks: Networks = _variable("FOREDECK_WEBHOOK_ALLOWED_NETWORKS", ())
    """Networks, with commas, that webhooks may reach though they are not public."""

    @model_validator(mode="after")
    def _check_across_variables(self) -> Self:
        if 2 * self.ray_timeout_s > self.lease_s:
            raise ValueError(
                "FOREDECK_RAY_TIMEOUT_S must be at most half of FOREDECK_LEASE_S: the work outlasts its lease"
            )
        if self.oidc_issuer and not self.oidc_client_id:
            raise ValueError("FOREDECK_OIDC_ISSUER needs FOREDECK_OIDC_CLIENT_ID: this service's name there")
        return self

    @property
    def local_data_dirs(self) -> list[str] | None:
        if self.cluster_data_dirs is None:
            return None if self.ray_address is None else []
        return list(self.cluster_data_dirs)

    @property
    def local_storage_dir(self) -> Path:
        return self.storage_dir or self.home / "storage"

    @property
    def local_api_url(self) -> str:
        return self.cluster_api_url or self.public_url

    @property
    def is_https(self) -> bool:
        return self.public_url.startswith("https://")


def load(environment: Mapping[str, str] = os.environ) -> Settings:
    """Settings from the environment; an empty variable counts as unset.

    Raises pydantic.ValidationError, which names each bad variable and what it should be; values may be secret.
    """
    names = [field.alias for field in Settings.model_fields.values() if field.alias]
    return Settings.model_validate({name: environment[name] for name in names if environment.get(name)})


def database_url(environment: Mapping[str, str] = os.environ) -> str:
    """DATABASE_URL alone, for migrations, which need nothing else."""
    if not environment.get("DATABASE_URL"):
        raise RuntimeError("set DATABASE_URL, as in postgresql://user:password@127.0.0.1:5432/foredeck")
    return _with_driver(environment["DATABASE_URL"])
