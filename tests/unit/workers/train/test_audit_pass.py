"""The audit's share of the pass against row-by-row computation, with evidence made by the real acceptance rule."""

import math
from dataclasses import replace

import pytest
import torch

from workers.algo.acceptance import verify
from workers.algo.lossless.ks import ks_uniform
from workers.algo.sampling import Truncation, truncate
from workers.rollout.engine import DraftEvidence
from workers.train.audit_pass import AuditPass
from workers.train.trainer import TrainingBatch

VOCABULARY, NUM_ROWS, LENGTH, PROMPT = 12, 60, 30, 3
TRUNCATIONS = [Truncation(), Truncation(top_p=0.8), Truncation(top_k=3), Truncation(min_p=0.2)]


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def logits(seed, spread=1.5):
    return torch.randn(NUM_ROWS, PROMPT + LENGTH, VOCABULARY, generator=generator(seed)) * spread


def make(truncation=Truncation(), seed=0, is_accepting_always=False, is_determined=False):
    """(log p, batch): every response token has been drafted, tested and decided by `verify`.

    is_determined: drafts are the likeliest tokens, not drawn, so that q is one-hot.
    """
    log_p = logits(1).log_softmax(-1)
    p = truncate(log_p.exp(), truncation)[:, PROMPT - 1 : -1].flatten(0, 1)
    q = truncate((log_p + logits(2, 0.6)).softmax(-1), truncation)[:, PROMPT - 1 : -1].flatten(0, 1)
    if is_determined:
        q = torch.nn.functional.one_hot(q.argmax(1), VOCABULARY).float()
    drafted = torch.multinomial(q, 1, generator=generator(seed))
    policy = torch.stack([p, p], 1)  # the second row is that of the bonus, which is not looked at
    verdict = verify(drafted, None if is_determined else q[:, None], policy, generator(seed + 1))
    accepted = verdict.num_accepted_B == 1
    if is_accepting_always:
        accepted = torch.ones_like(accepted)
    emitted = torch.where(accepted, drafted[:, 0], verdict.next_token_B)
    chosen = p.gather(1, emitted[:, None]).log().view(NUM_ROWS, LENGTH)
    pad = torch.nn.functional.pad
    rows, columns = (t.flatten() for t in torch.meshgrid(torch.arange(NUM_ROWS), torch.arange(LENGTH), indexing="ij"))
    top = q.topk(1 if is_determined else 5)
    batch = TrainingBatch(
        pad(emitted.view(NUM_ROWS, LENGTH), (PROMPT, 0)),
        pad(torch.ones(NUM_ROWS, LENGTH), (PROMPT, 0)),
        pad(chosen, (PROMPT, 0)),
        1.0,
        truncation,
        DraftEvidence(
            rows, columns, drafted[:, 0], accepted, q.gather(1, drafted)[:, 0], top.indices, top.values.float()
        ),
    )
    return log_p, batch


def taken(log_p, batch, seed=3):
    audit = AuditPass(generator(seed))
    audit.take(log_p, batch)
    return audit


@pytest.mark.parametrize("is_determined", [False, True])
@pytest.mark.parametrize("truncation", TRUNCATIONS)
def test_exact_sampling_is_seen_as_exact(truncation, is_determined):
    audit = taken(*make(truncation, is_determined=is_determined))
    seen = audit.observations()
    assert len(seen.pit_N) == len(seen.ordered_pit_M) == NUM_ROWS * LENGTH
    assert ks_uniform(seen.pit_N).p_value > 1e-3
    assert ks_uniform(seen.ordered_pit_M).p_value > 1e-3
    gap = seen.is_accepted_M.double() - seen.acceptance_probs_M
    assert abs(gap.sum()) < 4 * (seen.acceptance_probs_M * (1 - seen.acceptance_probs_M)).sum().sqrt()
    assert (seen.num_excluded, seen.num_contradictions) == (0, 0)
    metrics = audit.mismatch_metrics()
    assert metrics["mismatch/kl_nats"] == pytest.approx(0, abs=1e-7)
    assert metrics["mismatch/token_mult_prob_error_ratio"] == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("is_determined", [False, True])
def test_a_broken_acceptance_rule_is_seen_where_the_draft_is_known(is_determined):
    seen = taken(*make(is_accepting_always=True, is_determined=is_determined)).observations()
    assert ks_uniform(seen.ordered_pit_M).p_value < 1e-9
    assert (1 - seen.acceptance_probs_M).mean() > 0.1


def test_numbers_agree_with_row_by_row_computation():
    log_p, batch = make(Truncation(top_p=0.8))
    seen = taken(log_p, batch).observations()
    evidence = batch.evidence
    for at in range(0, NUM_ROWS * LENGTH, 97):
        row, position = int(evidence.completion_M[at]), int(evidence.position_M[at])
        p = truncate(log_p[row, PROMPT + position - 1].exp(), batch.truncation)
        expected = min(1.0, (p[evidence.drafted_M[at]] / evidence.draft_probs_M[at]).item())
        assert seen.acceptance_probs_M[at].item() == pytest.approx(expected, abs=1e-6)
        q = torch.zeros(VOCABULARY).scatter(0, evidence.top_ids_MN[at], evidence.top_probs_MN[at])
        token = int(batch.token_ids_BT[row, PROMPT + position])
        score = torch.where(q > 0, q / p, 0.0)
        before = [x for x in range(VOCABULARY) if (-score[x], x) < (-score[token], token)]
        below = p[before].sum().item()
        assert below - 1e-6 <= seen.ordered_pit_M[at].item() <= below + p[token].item() + 1e-6


def test_only_the_chosen_responses_are_looked_at():
    log_p, batch = make()
    is_audited = torch.arange(NUM_ROWS) % 3 == 0
    audit = taken(log_p, replace(batch, is_audited_B=is_audited, evidence=None))
    assert len(audit.observations().pit_N) == NUM_ROWS // 3 * LENGTH
    assert len(audit.observations().ordered_pit_M) == 0
    nothing = taken(log_p, replace(batch, is_audited_B=torch.zeros(NUM_ROWS, dtype=torch.bool), evidence=None))
    assert nothing.mismatch_metrics() == {}


def test_tokens_that_the_truncation_excludes_are_counted_and_nothing_is_infinite():
    log_p, batch = make()  # drawn from all tokens, judged by three of them
    audit = taken(log_p, replace(batch, truncation=Truncation(top_k=3)))
    p = truncate(log_p.exp(), Truncation(top_k=3))[:, PROMPT - 1 : -1]
    num_excluded = int((p.gather(2, batch.token_ids_BT[:, PROMPT:, None]) == 0).sum())
    seen = audit.observations()
    assert seen.num_excluded == num_excluded > 20
    assert (seen.pit_N > 1 - 1e-6).sum() >= num_excluded
    assert all(math.isfinite(value) for value in audit.mismatch_metrics().values())
    assert seen.acceptance_probs_M.isfinite().all()


def test_outcomes_that_contradict_the_response_are_counted():
    log_p, batch = make()
    flipped = batch.evidence.is_accepted_M.clone()
    flipped[5:9] ^= True
    seen = taken(log_p, replace(batch, evidence=replace(batch.evidence, is_accepted_M=flipped))).observations()
    assert seen.num_contradictions == 4


def test_mismatch_is_hand_computed():
    log_p, batch = make()
    shifted = replace(batch, engine_logprobs_BT=batch.engine_logprobs_BT + 0.1 * batch.response_mask_BT)
    metrics = taken(log_p, shifted).mismatch_metrics()
    assert metrics["mismatch/token_mult_prob_error_ratio"] == pytest.approx(math.exp(0.1), rel=1e-4)
    assert metrics["mismatch/kl_nats"] == pytest.approx(math.exp(-0.1) + 0.1 - 1, rel=1e-2)


def test_many_rows_are_taken_in_chunks_of_the_same_result(monkeypatch):
    log_p, batch = make(Truncation(top_p=0.9))
    whole = taken(log_p, batch).observations()
    monkeypatch.setattr("workers.train.audit_pass._ROWS_AT_ONCE", 7)
    parts = taken(log_p, batch).observations()
    torch.testing.assert_close(parts.acceptance_probs_M, whole.acceptance_probs_M)
    assert parts.num_contradictions == whole.num_contradictions == 0
    assert len(parts.pit_N) == len(whole.pit_N)
