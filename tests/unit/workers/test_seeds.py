from workers.seeds import derive_seed


def test_seeds_depend_on_everything_and_stay_in_range():
    seeds = {derive_seed(seed, purpose, step) for seed in (1, 2) for purpose in ("a", "b") for step in range(250)}
    assert len(seeds) == 1000
    assert all(0 <= seed < 2**31 for seed in seeds)
    assert derive_seed(1, "a", 3) == derive_seed(1, "a", 3)
