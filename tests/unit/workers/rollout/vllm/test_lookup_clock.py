from workers.rollout.vllm.lookup_clock import LookupClock


def test_time_inside_adds_up_until_it_is_taken():
    clock = LookupClock()
    for _ in range(2):
        with clock.measuring():
            sum(range(1000))
    assert clock.take() > 0
    assert clock.take() == 0
