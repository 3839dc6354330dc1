"""Gates as the OpenAPI document shows them."""

from typing import Any

from backend.gates.schemas import Gate

GATE: dict[str, Any] = {"assertion": "acceptance_length >= baseline - 0.1", "baseline": "label:branch:main"}
GATE_READ = Gate.model_validate(GATE).model_dump(mode="json")
_RUN = "6a0e4b52-3f0d-4c1b-9d3e-0d8d4f0a7c11"
_TIME = "2030-01-31T12:30:00Z"
_RESULT = {
    "name": GATE["assertion"],
    "assertion": GATE["assertion"],
    "verdict": "failed",
    "is_passed": False,
    "reason": "2.61 tokens (95 % interval 2.55 to 2.67) is not >= 3.02.",
    "metric": "rollout/acceptance_length_tokens",
    "unit": "tokens",
    "aggregate": "mean",
    "operator": ">=",
    "confidence": 0.95,
    "estimate": 2.61,
    "low": 2.55,
    "high": 2.67,
    "limit": 3.02,
    "first_step": 1,
    "last_step": 40,
    "num_values": 40,
    "num_non_finite": 0,
    "num_effective": 23.4,
    "method": "pooled over steps, Student's t for autocorrelated steps around a trend, compared step by step",
    "baseline": {
        "run_id": "0b7c2f8e-9a51-4f6e-8f57-5a3b1f0f9d20",
        "run_name": "nightly",
        "estimate": 3.12,
        "first_step": 1,
        "last_step": 40,
        "num_values": 40,
        "is_paired": True,
    },
}
EVALUATION = {
    "id": "d1f6a1de-7b0b-4b57-8f0c-0c1e7b3b2a55",
    "run_id": _RUN,
    "created_at": _TIME,
    "trigger": "end",
    "evaluated_by": None,
    "run_status": "succeeded",
    "verdict": "failed",
    "num_gates": 1,
    "num_failed": 1,
    "results": [_RESULT],
}
RUN_GATES = {
    "run_id": _RUN,
    "verdict": "failed",
    "gates": [GATE_READ],
    "evaluation": EVALUATION,
    "evaluations": [{name: EVALUATION[name] for name in ("id", "created_at", "trigger", "verdict")}],
}
