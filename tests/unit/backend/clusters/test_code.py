import shlex

import pytest
from ray.runtime_env import RuntimeEnv

from backend.clusters.code import stored, wrong_python

ARCHIVE = "https://builds.example.org/foredeck.zip"
RUNTIME_ENV = {"kind": "runtime_env", "working_dir": ARCHIVE, "pip": ["torch==2.13.0"]}
CONTAINER = {"kind": "container", "image": "ours:1", "options": ["--device=nvidia.com/gpu=all"]}
LONGER = {"setup_timeout_seconds": 3600}


@pytest.mark.parametrize(
    ("code", "sent"),
    [
        ({"kind": "installed"}, {}),
        (RUNTIME_ENV, {"working_dir": ARCHIVE, "pip": ["torch==2.13.0"], "config": LONGER}),
    ],
)
def test_what_ray_is_told_where_jobs_see_the_machines_folders(code, sent):
    assert stored(code).runtime_env(["/shared"], ["/models"]) == sent
    assert sent.keys() <= RuntimeEnv(**sent).keys()  # Ray refuses what it does not know


def test_a_container_is_given_the_folders_and_nothing_else():
    sent = stored(CONTAINER).runtime_env(["/shared runs"], ["/models", "/shared runs"])
    options = [
        "--rm",
        "--volume='/shared runs:/shared runs'",
        "--volume=/models:/models:ro",
        "--device=nvidia.com/gpu=all",
    ]
    assert sent == {"container": {"image": "ours:1", "run_options": options}, "config": LONGER}
    assert RuntimeEnv(**sent).py_container_run_options() == options


def test_a_folders_name_is_no_command():
    sent = stored(CONTAINER).runtime_env(["/a'; rm -r $HOME"], [])
    assert shlex.split(" ".join(sent["container"]["run_options"])) == [
        "--rm",
        "--volume=/a'; rm -r $HOME:/a'; rm -r $HOME",
        "--device=nvidia.com/gpu=all",
    ]


@pytest.mark.parametrize(
    ("code", "is_free"),
    [
        ({"kind": "installed"}, True),
        ({"kind": "runtime_env", "working_dir": ARCHIVE, "pip": []}, True),
        (RUNTIME_ENV, False),
        (CONTAINER, False),
    ],
)
def test_only_code_without_an_interpreter_of_its_own_takes_one(code, is_free):
    assert (wrong_python("/opt/foredeck/bin/python", code) is None) is is_free
    assert wrong_python("python", code) is None
