"""`foredeck draft train` through the real service, Ray and worker."""

from pathlib import Path


def test_a_draft_is_trained_reported_and_left_in_the_runs_folder(installation, trained_draft) -> None:
    report = trained_draft
    assert report["status"] == "succeeded"
    assert 1 <= report["acceptance_length_tokens"] <= 4
    assert [row["position"] for row in report["positions"]] == [1, 2, 3]
    assert all(0 <= row["accepted_fraction"] <= 1 for row in report["positions"])
    folder = Path(report["path"])
    assert folder.is_relative_to(installation.home.root)
    assert {"config.json", "model.safetensors"} <= {file.name for file in folder.iterdir()}
    run = installation.json_of("show", report["run_id"])
    assert run["job"] == "draft_training"
    assert run["num_steps"] == 0
