from contract.gates.metrics import ALIASES, DRAFT_ALIASES, default_aggregate, near, resolve, weight_of
from contract.telemetry.metrics import METRICS


def test_short_names_mean_metrics_of_the_catalogue():
    assert set(ALIASES.values()) | set(DRAFT_ALIASES.values()) <= set(METRICS)
    assert not set(ALIASES) & set(METRICS)


def test_acceptance_length_is_that_of_held_out_responses_for_draft_training():
    assert resolve("acceptance_length") is METRICS["rollout/acceptance_length_tokens"]
    draft = resolve("acceptance_length", "draft_training")
    assert draft is METRICS["draft_pretraining/held_out_acceptance_length_tokens"]
    assert resolve("nonsense") is None


def test_weights_are_metrics_and_pool_what_is_pooled():
    weights = {metric.name: weight for metric in METRICS.values() if (weight := weight_of(metric))}
    assert set(weights.values()) <= set(METRICS)
    assert {METRICS[name].reduction for name in weights} == {"pooled"}


def test_metrics_of_the_run_so_far_are_not_averaged():
    assert default_aggregate(METRICS["lossless/run_ks_distance"]) == "last"
    assert default_aggregate(METRICS["reward/train_mean"]) == "mean"


def test_near_names():
    assert near("acceptence_length")[0] == "acceptance_length"
    assert near("reward/trian_mean")[0] == "reward/train_mean"
    assert near("qqqq") == []
