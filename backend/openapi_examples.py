"""Examples of the OpenAPI document, by operation: each can be sent, or is answered, as it stands."""

from typing import Any

from backend.gates.examples import EVALUATION, GATE, GATE_READ, RUN_GATES
from backend.runs.schemas import EXAMPLE_CONFIG
from contract.config import RunConfig
from contract.sizing.memory import estimate_memory
from contract.telemetry.alarms import ALARMS, AlarmName

_RUN = "6a0e4b52-3f0d-4c1b-9d3e-0d8d4f0a7c11"
_ID = "2b1c7c0e-5a64-4a53-8f0e-b7d4c6a1e9f2"
_TIME = "2030-01-31T12:00:00Z"
_CONFIG = RunConfig.model_validate(EXAMPLE_CONFIG)
_MEMORY = estimate_memory(_CONFIG)
_RESOLVED = {"config": _CONFIG.model_dump(mode="json"), "config_sha256": _CONFIG.sha256()}

_ATTEMPT = {
    "number": 1,
    "submission_id": f"{_RUN}-1",
    "outcome": None,
    "error": None,
    "resumed_from_step": None,
    "last_checkpoint_step": 10,
    "created_at": _TIME,
    "started_at": _TIME,
    "ended_at": None,
}
_SHARED = {
    "id": _RUN,
    "name": "eagle3 k=3",
    "labels": {"team": "post-training"},
    "status": "running",
    "status_reason": "Running.",
    "is_ended": False,
    "is_stop_requested": False,
    "project": "default",
    "cluster": "local",
    "job": "grpo",
    "stage": "generation",
    "step": 12,
    "num_steps": 40,
    "stage_progress_fraction": None,
    "current_attempt": 1,
    "priority": 0,
    "queue_position": None,
    "sweep_id": None,
    "sweep_point": None,
    "gates_verdict": "pending",
    "num_active_alarms": 1,
    "created_at": _TIME,
    "started_at": _TIME,
    "ended_at": None,
    "updated_at": _TIME,
}
_RUN_READ = {
    **_SHARED,
    **_RESOLVED,
    "notes": "Longer drafts than last week.",
    "max_attempts": 3,
    "gates": [GATE_READ],
    "cloned_from_id": None,
    "created_by": "admin",
    "last_heartbeat_at": _TIME,
    "last_checkpoint_step": 10,
    "last_checkpoint_path": "/mnt/shared/foredeck/runs/6a0e4b52/checkpoints/step-10",
    "eta_s": 84.0,
    "latest": {"reward/train_mean": 0.71, "rollout/acceptance_length_tokens": 3.1},
    "attempts": [_ATTEMPT],
}
_SUMMARY = {
    **_SHARED,
    "reward": 0.71,
    "acceptance_length": 3.1,
    "generation_speedup": 1.6,
    "validation_accuracy": 0.68,
}
_CLUSTER = {
    "name": "h100-east",
    "address": "http://ray-head:8265",
    "python": "/opt/foredeck/bin/python",
    "storage_dir": "/mnt/shared/foredeck",
    "api_url": "https://foredeck.example.org",
    "max_concurrent_runs": 2,
    "max_concurrent_runs_per_user": None,
    "max_concurrent_runs_per_project": None,
    "code": {"kind": "installed"},
    "reward_modules": ["our_rewards"],
    "data_dirs": ["/models", "/data"],
}
_CLUSTER_READ = {
    **_CLUSTER,
    "id": _ID,
    "is_embedded": False,
    "num_live_runs": 1,
    "num_queued_runs": 0,
    "created_at": _TIME,
    "reachability": {"state": "reachable", "detail": "Ray 2.60.0 answers.", "ray_version": "2.60.0"},
    "resources": {"GPU": {"used": 1.0, "total": 8.0}},
}
_TOKEN = {"name": "ci", "scopes": ["read", "write"], "project": "default", "expires_at": None}
_TOKEN_READ = {**_TOKEN, "user": "grace", "id": _ID, "prefix": "0c1d2e3f", "created_at": _TIME, "last_used_at": None}
_NEW_USER = {"name": "grace", "email": "grace@example.org", "is_admin": False}
_USER = {**_NEW_USER, "id": _ID, "is_active": True, "oidc_subject": None, "created_at": _TIME}
_SESSION = {"user": _USER, "csrf_token": "k3v0Zt0yqV0n..."}
_LOGIN_LINK = {"url": "https://foredeck.example.org/login#code=Jx0cQ2...", "expires_at": _TIME}
_PROJECT = {
    "id": _ID,
    "name": "post-training",
    "role": "admin",
    "num_runs": 0,
    "num_members": 1,
    "created_at": _TIME,
}
_MEMBER = {"user": "grace", "role": "launcher", "is_active": True}
_AUDIT_ENTRY = {
    "id": 42,
    "time": _TIME,
    "actor": "token:grace/ci",
    "action": "run.launch",
    "target": _RUN,
    "detail": {"name": "eagle3 k=3"},
    "project": "post-training",
    "address": "192.0.2.7",
    "request_id": "5f0c4c2b8e0d4d6a9b1e3c7a2f5d8e90",
}
_FIGURE: dict[str, Any] = {
    "data": [{"type": "scatter", "name": "reward", "meta": {"series": "reward/train_mean"}}],
    "layout": {"meta": {"title": "Reward", "empty": "The first step has not been rewarded yet."}},
}
_SAMPLE = {
    "prompt": "12+34=",
    "answer": "46",
    "response": "46#46",
    "reward": 1.0,
    "advantage": 0.5,
    "is_truncated": False,
    "rounds": [
        {
            "drafted": [8, 10],
            "num_accepted": 2,
            "emitted": 3,
            "draft_logprobs": [-0.1, -0.2],
            "policy_logprobs": [-0.1, -0.3],
        }
    ],
    "vocabulary": {"3": "#", "8": "4", "10": "6"},
}
_EVENT = {
    "run_id": _RUN,
    "attempt": 1,
    "emitter": "driver/0",
    "seq": 1,
    "time": _TIME,
    "body": {"kind": "metrics", "step": 1, "values": {"reward/train_mean": 0.5}},
}
_ALARM = {
    "name": ALARMS[AlarmName.NO_SPEEDUP].name,
    "title": ALARMS[AlarmName.NO_SPEEDUP].title,
    "meaning": ALARMS[AlarmName.NO_SPEEDUP].meaning,
    "what_to_do": ALARMS[AlarmName.NO_SPEEDUP].what_to_do,
    "is_active": True,
    "attempt": 1,
    "step": 10,
    "time": _TIME,
    "message": "Speedup 0.91 (95 % interval 0.88 to 0.94).",
    "ending": None,
    "ended_step": None,
    "ended_at": None,
}
_LOG_LINE = {
    "id": 7,
    "attempt": 1,
    "emitter": "driver/0",
    "time": _TIME,
    "level": "info",
    "message": "step 12: reward 0.71",
}
_COLUMNS = {
    "name": "reward/train_mean",
    "step": [1, 2],
    "value": [0.5, 0.71],
    "min": [0.5, 0.71],
    "max": [0.5, 0.71],
    "attempt": [1, 1],
    "num_non_finite": 0,
}
_SERIES = {
    "name": "reward/train_mean",
    "unit": "1",
    "meaning": "Mean reward of the step's responses.",
    "axis": "step",
    "num_points": 12,
    "num_non_finite": 0,
    "last_step": 12,
    "last_value": 0.71,
}

_SWEEP = {
    "name": "draft lengths",
    "example": "arithmetic-eagle3",
    "axes": {"drafter.draft_length": [1, 3, 5]},
    "labels": {"team": "post-training"},
    "max_concurrent": 2,
}
_SWEEP_FIELDS = {
    "id": _ID,
    "name": "draft lengths",
    "labels": {"team": "post-training"},
    "project": "default",
    "cluster": "local",
    "keys": ["drafter.draft_length"],
    "max_concurrent": 2,
    "num_runs": 3,
    "num_runs_by_status": {"running": 2, "queued": 1},
    "is_ended": False,
    "created_by": "admin",
    "created_at": _TIME,
}
_SWEEP_SUMMARY = {
    **_SWEEP_FIELDS,
    "best": {
        "run_id": _RUN,
        "name": "draft lengths draft_length=3",
        "point": {"drafter.draft_length": 3},
        "metric": "reward",
        "value": 0.71,
    },
}
_SWEEP_READ = {
    **_SWEEP_FIELDS,
    "notes": "",
    "config": _CONFIG.model_dump(mode="json"),
    "runs": [{**_SUMMARY, "sweep_id": _ID, "sweep_point": {"drafter.draft_length": 3}}],
}
_WEBHOOK = {"name": "deploy bot", "url": "https://ci.example.org/foredeck", "events": ["run.failed", "run.succeeded"]}
_WEBHOOK_READ = {
    **_WEBHOOK,
    "id": _ID,
    "project": "default",
    "is_enabled": True,
    "disabled_reason": None,
    "failing_since": None,
    "num_pending": 0,
    "previous_secret_expires_at": None,
    "created_at": _TIME,
    "updated_at": _TIME,
}
_DELIVERY_ATTEMPT = {"started_at": _TIME, "duration_ms": 84, "status": 204, "answer": "", "error": None}
_DELIVERY = {
    "id": _ID,
    "message_id": "msg_2b1c7c0e5a644a538f0eb7d4c6a1e9f2",
    "type": "run.succeeded",
    "state": "succeeded",
    "created_at": _TIME,
    "ended_at": _TIME,
    "next_attempt_at": None,
    "num_attempts": 1,
    "last_attempt": _DELIVERY_ATTEMPT,
}
_DELIVERY_BODY = '{"type":"run.succeeded","timestamp":"2030-01-31T12:00:00.000Z","data":{}}'
_WAITING = {**_DELIVERY, "state": "pending", "ended_at": None, "next_attempt_at": _TIME}
_PING = {**_WAITING, "type": "ping", "num_attempts": 0, "last_attempt": None}

REQUESTS: dict[str, Any] = {
    "clusters_create": _CLUSTER,
    "clusters_update": {"max_concurrent_runs": 4},
    "members_set": {"role": "launcher"},
    "projects_create": {"name": "post-training"},
    "projects_update": {"name": "alignment"},
    "run_config_validate": {"config": EXAMPLE_CONFIG},
    "gates_evaluate": {"gates": [GATE]},
    "runs_create": {"name": "eagle3 k=3", "config": EXAMPLE_CONFIG, "labels": {"team": "post-training"}},
    "runs_clone": {"name": "eagle3 k=5", "overrides": {"drafter": {"draft_length": 5}}},
    "runs_update": {"notes": "Longer drafts than last week."},
    "session_create": {"code": "Jx0cQ2..."},
    "sweeps_create": _SWEEP,
    "sweeps_update": {"notes": "Which draft length pays?"},
    "telemetry_ingest": {"events": [_EVENT]},
    "tokens_create": _TOKEN,
    "users_create": _NEW_USER,
    "users_update": {"is_active": False},
    "webhooks_create": _WEBHOOK,
    "webhooks_rotate_secret": {"overlap_s": 86_400},
    "webhooks_update": {"events": ["run.failed"]},
}
"""By operation id."""

RESPONSES: dict[str, Any] = {
    "audit_list": {"items": [_AUDIT_ENTRY], "next_cursor": None},
    "clusters_check": {"id": "check-h100-east-3f2a9c1e"},
    "clusters_check_get": {
        "id": "check-h100-east-3f2a9c1e",
        "state": "passed",
        "findings": [{"name": "storage_dir", "is_ok": True, "detail": "/mnt/shared/foredeck: shared by all"}],
        "log": [],
    },
    "clusters_create": _CLUSTER_READ,
    "clusters_get": _CLUSTER_READ,
    "clusters_list": [_CLUSTER_READ],
    "clusters_shares": {
        "users": [{"name": "grace", "num_live_runs": 1, "num_queued_runs": 2}],
        "projects": [{"name": "post-training", "num_live_runs": 1, "num_queued_runs": 2}],
    },
    "clusters_update": {**_CLUSTER_READ, "max_concurrent_runs": 4, "reachability": None, "resources": None},
    "figures_get_figure": {**_FIGURE, "data": [{**_FIGURE["data"][0], "x": [1, 2], "y": [0.5, 0.71]}]},
    "figures_get_template": _FIGURE,
    "figures_list_figures": {
        "figures": [
            {
                "name": "reward",
                "title": "Reward",
                "group": "Learning",
                "description": "Mean reward of each step's responses.",
                "series": ["reward/train_mean"],
            }
        ],
        "palette": {"reward": "#0072B2"},
        "run_colors": ["#0072B2", "#D55E00"],
    },
    "gates_evaluate": EVALUATION,
    "gates_get": RUN_GATES,
    "health": {"status": "ok"},
    "login_links_create": _LOGIN_LINK,
    "login_methods": {"oidc": {"name": "Example ID", "path": "/api/v1/login/oidc"}},
    "members_list": [_MEMBER],
    "members_set": _MEMBER,
    "projects_create": _PROJECT,
    "projects_get": _PROJECT,
    "projects_list": {"items": [_PROJECT], "next_cursor": None},
    "projects_update": {**_PROJECT, "name": "alignment"},
    "ready": {"status": "ready", "checks": {"postgres": "ok", "schema": "ok", "redis": "ok"}},
    "run_config_examples": [
        {"name": "arithmetic", "title": "Arithmetic", "description": "Sums.", "config": _RESOLVED["config"]}
    ],
    "run_config_schema": {"title": "RunConfig", "type": "object"},
    "run_config_validate": {**_RESOLVED, "memory": _MEMORY.model_dump(mode="json") if _MEMORY else None},
    "runs_clone": _RUN_READ,
    "runs_create": _RUN_READ,
    "runs_get": _RUN_READ,
    "runs_list": {"items": [_SUMMARY], "next_cursor": None},
    "runs_stop": {
        **_RUN_READ,
        "is_stop_requested": True,
        "status_reason": "Stopping: the worker finishes its stage.",
    },
    "runs_update": _RUN_READ,
    "runs_wait": _RUN_READ,
    "session_create": _SESSION,
    "session_get": _SESSION,
    "sweeps_create": _SWEEP_READ,
    "sweeps_get": _SWEEP_READ,
    "sweeps_update": {**_SWEEP_READ, "notes": "Which draft length pays?"},
    "sweeps_list": {"items": [_SWEEP_SUMMARY], "next_cursor": None},
    "sweeps_stop": {**_SWEEP_READ, "num_runs_by_status": {"stopped": 3}, "is_ended": True},
    "telemetry_get_alarms": {"num_active": 1, "items": [_ALARM]},
    "telemetry_get_logs": {"items": [_LOG_LINE], "last_id": 7},
    "telemetry_get_samples": {"steps": [5, 10], "step": 10, "items": [{**_SAMPLE, "id": 1, "attempt": 1, "step": 10}]},
    "telemetry_get_series_data": {"bucket_width": 1, "series": [_COLUMNS]},
    "telemetry_ingest": {
        "acknowledged": [{"attempt": 1, "emitter": "driver/0", "seq": 1}],
        "current_attempt": 1,
        "is_stop_requested": False,
    },
    "telemetry_list_series": [_SERIES],
    "tokens_create": {**_TOKEN_READ, "token": "fdk_0c1d2e3f_..."},
    "tokens_list": {"items": [_TOKEN_READ], "next_cursor": None},
    "users_create": _USER,
    "users_get": _USER,
    "users_list": {"items": [_USER], "next_cursor": None},
    "users_login_link": _LOGIN_LINK,
    "users_update": {**_USER, "is_active": False},
    "webhooks_create": {**_WEBHOOK_READ, "secret": "whsec_..."},
    "webhooks_get": _WEBHOOK_READ,
    "webhooks_get_delivery": {**_DELIVERY, "body": _DELIVERY_BODY, "attempts": [_DELIVERY_ATTEMPT]},
    "webhooks_list": {"items": [_WEBHOOK_READ], "next_cursor": None},
    "webhooks_list_deliveries": {"items": [_DELIVERY], "next_cursor": None},
    "webhooks_ping": _PING,
    "webhooks_redeliver": _WAITING,
    "webhooks_rotate_secret": {**_WEBHOOK_READ, "previous_secret_expires_at": _TIME, "secret": "whsec_..."},
    "webhooks_update": {**_WEBHOOK_READ, "events": ["run.failed"]},
    "worker_tokens_create": {"token": "fdk_0c1d2e3f_..."},
}
"""By operation id: what it answers when all is well."""

PROBLEM: dict[str, Any] = {
    "type": "about:blank",
    "title": "Unprocessable Entity",
    "status": 422,
    "detail": "/config/grpo/num_steps: must be at least 1.",
    "instance": "/api/v1/runs",
    "request_id": "5f0c4c2b8e0d4d6a9b1e3c7a2f5d8e90",
    "errors": [
        {"pointer": "/config/grpo/num_steps", "parameter": None, "detail": "must be at least 1", "value": 0},
    ],
}
