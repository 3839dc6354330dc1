import io
from uuid import UUID

RUN_ID = UUID("11111111-2222-4333-8444-555555555555")


def test_a_file_is_written_part_by_part(server, service) -> None:
    server.answers = [(200, {}, "PAR1...PAR1")]
    file = io.BytesIO()
    assert service.export.samples(RUN_ID, file) == 11
    assert file.getvalue() == b"PAR1...PAR1"
    assert server.asked[0].path == f"/api/v1/runs/{RUN_ID}/samples.parquet"


def test_series_of_several_runs_are_chosen_by_id_label_and_name(server, service) -> None:
    server.answers = [(200, {}, "run_id\n")]
    names = ["reward/train_mean", "policy/loss"]
    service.export.series(io.BytesIO(), form="csv", run_ids=[RUN_ID], labels={"a": "b"}, names=names)
    query = f"runs={RUN_ID}&label=a%3Ab&names=reward%2Ftrain_mean%2Cpolicy%2Floss&attempts=newest"
    assert server.asked[0].path == f"/api/v1/export/series.csv?{query}"
