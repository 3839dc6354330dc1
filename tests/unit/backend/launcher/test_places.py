from uuid import uuid4

from backend.launcher.places import Owners, Places

ANN, BOB, PROJECT, OTHER, SWEEP = (uuid4() for _ in range(5))


def of(user=ANN, project=PROJECT, sweep=None):
    return Owners(user, project, sweep)


def test_places_are_offered_until_none_is_left():
    places = Places(2)
    places.offer([of(), of(), of()])
    assert places.num_taken == 2
    assert places.kept_back_by(of()) is None


def test_whoever_is_kept_back_lets_those_behind_pass():
    places = Places(3, per_user=1)
    places.offer([of(), of(), of(BOB), of()])
    assert places.num_taken == 2
    assert (places.kept_back_by(of()), places.kept_back_by(of(BOB)), places.kept_back_by(of(uuid4()))) == (
        "user",
        "user",
        None,
    )


def test_each_limit_counts_its_own():
    places = Places(9, per_user=3, per_project=2, per_sweep={SWEEP: 1})
    places.take(of(sweep=SWEEP))
    assert places.kept_back_by(of(BOB, OTHER, SWEEP)) == "sweep"
    assert places.kept_back_by(of(BOB, OTHER)) is None
    places.take(of(BOB))
    assert places.kept_back_by(of(BOB)) == "project"
    places.take(of(ANN, OTHER), 2)
    assert places.kept_back_by(of(ANN, uuid4())) == "user"


def test_runs_of_no_sweep_have_no_sweeps_limit():
    places = Places(9, per_sweep={SWEEP: 1})
    places.offer([of(), of(), of(sweep=uuid4()), of(sweep=SWEEP), of(sweep=SWEEP)])
    assert places.num_taken == 4


def test_more_may_hold_places_than_there_are_now():
    places = Places(1)
    places.take(of(), 3)
    places.offer([of(BOB)])
    assert places.num_taken == 3
