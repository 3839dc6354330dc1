import torch

from workers.algo.lossless.observations import AuditObservations


def test_parts_are_put_together_and_nothing_is_nothing():
    parts = [
        AuditObservations(torch.tensor([0.25], dtype=torch.float64), 2),
        AuditObservations(
            ordered_pit_M=torch.tensor([0.5], dtype=torch.float64),
            is_accepted_M=torch.tensor([True]),
            acceptance_probs_M=torch.tensor([0.75], dtype=torch.float64),
            num_contradictions=1,
        ),
        AuditObservations(torch.tensor([0.125], dtype=torch.float64), 1),
    ]
    joined = AuditObservations.joined(parts)
    assert joined.pit_N.tolist() == [0.25, 0.125]
    assert (joined.num_excluded, joined.num_contradictions) == (3, 1)
    assert (joined.ordered_pit_M.tolist(), joined.acceptance_probs_M.tolist()) == ([0.5], [0.75])
    assert joined.is_accepted_M.tolist() == [True]
    assert len(AuditObservations.joined([]).pit_N) == 0
