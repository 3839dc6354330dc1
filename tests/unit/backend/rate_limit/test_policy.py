import pytest

from backend.rate_limit.policy import Policy, neighbourhood, policies
from backend.settings import Settings


def test_an_answer_says_what_is_left_and_when_all_of_it_is_back():
    policy = Policy("caller", 120)
    assert policy.headers(120) == {"RateLimit-Policy": '"caller";q=120;w=60', "RateLimit": '"caller";r=120;t=0'}
    assert policy.headers(0.5)["RateLimit"] == '"caller";r=0;t=60'
    assert policy.headers(118.9)["RateLimit"] == '"caller";r=118;t=1'


@pytest.mark.parametrize(("left", "wait_s"), [(0, 3), (0.5, 2), (0.999, 1), (1, 1)])
def test_how_long_to_wait(left, wait_s):
    assert Policy("login", 20).wait_s(left) == wait_s


def test_a_dashboard_with_twenty_charts_and_polling_stay_far_below_the_defaults():
    found = policies(Settings.model_validate({"DATABASE_URL": "postgresql://unused"}))
    assert found["caller"].per_s >= 4 * 20
    assert found["ingest"].per_s >= 10 * found["caller"].per_s
    assert found["login"].limit < found["stranger"].limit < found["caller"].limit


@pytest.mark.parametrize(
    ("address", "what"),
    [
        ("203.0.113.7", "203.0.113.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::", "2001:db8:1:2::/64"),
        ("testclient", "testclient"),
        ("", ""),
    ],
)
def test_an_ipv6_network_is_one_stranger(address, what):
    assert neighbourhood(address) == what
