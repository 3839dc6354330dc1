"""Figures over HTTP, bound to a run's data in a real database."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from uuid import UUID, uuid4

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select

from backend.auth import service as auth
from backend.figures.catalogue import CHARTS
from backend.main import create_app
from backend.models import Attempt, Cluster, Project, Run, User
from backend.settings import Settings
from backend.telemetry.ingest_repository import insert_points


@pytest.fixture
def client(database_url: str, redis_url: str) -> Iterator[TestClient]:
    app = create_app(Settings(DATABASE_URL=database_url, REDIS_URL=redis_url))
    with TestClient(app) as client:
        with app.state.database.transaction() as session:
            user = User(name="u", is_admin=True)
            session.add(user)
            session.flush()
            token = auth.issue_user_token(session, user, "t", ["read"])
        client.headers["Authorization"] = f"Bearer {token}"
        yield client


@pytest.fixture
def run_id(client: TestClient) -> UUID:
    """A run with three steps, the second probed, k = 3, and 4 then 16 audited tokens."""
    run_id, now = uuid4(), datetime.now(UTC)
    values = {
        "reward/train_mean": [0.25, 0.5, 0.75],
        "rollout/draft_length_tokens": [3.0, 3.0, 3.0],
        "rollout/acceptance_position_1_fraction": [0.75, 0.75, 0.75],
        "time/generation_s": [10.0, 20.0, 30.0],
        "lossless/num_tokens": [4.0, 16.0, float("nan")],
    }
    points = [(name, step, value, now) for name, column in values.items() for step, value in enumerate(column, 1)]
    points += [("speedup/generation_ratio", 2, 1.5, now)]
    with client.app.state.database.transaction() as session:  # type: ignore[attr-defined]
        cluster = Cluster(name="c", python="python", storage_dir="/s", api_url="http://127.0.0.1:1")
        run = Run(id=run_id, name="r", config={}, config_sha256="0", num_steps=3, cluster=cluster)
        run.project = session.scalars(select(Project)).one()
        run.attempts = [Attempt(number=1, submission_id=f"{run_id}-1", config={}, config_sha256="0")]
        session.add(run)
        session.flush()
        insert_points(session, run_id, 1, "driver/0", points)
    return run_id


def shown(client: TestClient, run_id: UUID, name: str) -> dict[str, tuple[list[int], list[float | None]]]:
    """x and y of each visible named trace."""
    figure = client.get(f"/api/v1/runs/{run_id}/figures/{name}").raise_for_status().json()
    return {trace["name"]: (trace["x"], trace["y"]) for trace in figure["data"] if trace["visible"] and "name" in trace}


def test_figures_are_listed_with_the_colours_they_share(client) -> None:
    answer = client.get("/api/v1/figures").json()
    assert [figure["name"] for figure in answer["figures"]] == list(CHARTS)
    assert all(re.fullmatch("#[0-9A-F]{6}", color) for color in [*answer["palette"].values(), *answer["run_colors"]])


def test_a_bound_figure_is_its_template_with_data(client, run_id) -> None:
    for name in CHARTS:
        template = client.get(f"/api/v1/figures/{name}").json()
        figure = client.get(f"/api/v1/runs/{run_id}/figures/{name}").json()
        assert figure["layout"] == template["layout"]
        stripped = [{key: trace[key] for key in trace if key not in {"x", "y", "visible"}} for trace in figure["data"]]
        assert stripped == template["data"], name


def test_values_are_those_of_the_run(client, run_id) -> None:
    assert shown(client, run_id, "reward") == {"train": ([1, 2, 3], [0.25, 0.5, 0.75])}
    assert shown(client, run_id, "acceptance_length") == {"all accepted, k + 1": ([1, 2, 3], [4, 4, 4])}
    assert shown(client, run_id, "acceptance_positions") == {"position 1": ([1, 2, 3], [75, 75, 75])}
    times = shown(client, run_id, "step_time")
    assert times == {"generation": ([1, 2, 3], [10, 20, 30]), "AR estimate": ([2], [30])}
    critical = shown(client, run_id, "losslessness")["significant at 1 %"]
    assert critical[1] == [pytest.approx(1.6276 / 2), pytest.approx(1.6276 / 4), None]


def test_a_page_stands_alone(client, run_id) -> None:
    answer = client.get(f"/api/v1/runs/{run_id}/figures/reward.html")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    page = answer.text
    assert f"<title>Reward, mean per response · run {run_id}</title>" in page
    assert "0.75" in page[page.index("Plotly.newPlot") :]
    assert not re.search(r"<(script|link)[^>]+(src|href)=", page), "it would need the network"


def test_what_does_not_exist_is_a_404(client, run_id) -> None:
    for path in ("figures/nonsense", f"runs/{run_id}/figures/nonsense", f"runs/{uuid4()}/figures/reward"):
        answer = client.get(f"/api/v1/{path}")
        assert (answer.status_code, answer.headers["content-type"]) == (404, "application/problem+json")
    assert client.get(f"/api/v1/runs/{run_id}/figures/nonsense.html").status_code == 404


def test_figures_need_a_login(client) -> None:
    del client.headers["Authorization"]
    assert client.get("/api/v1/figures").status_code == 401
    assert client.get("/api/v1/figures/reward").status_code == 401
