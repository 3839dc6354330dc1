from typing import Annotated

from pydantic import TypeAdapter

from backend.refusal import KEEP, Refused
from backend.runs.schemas import RunCreate

ADAPTER = TypeAdapter(Annotated[RunCreate, KEEP])


def test_a_good_body_is_the_model_and_a_bad_one_keeps_what_is_good_of_it():
    assert isinstance(ADAPTER.validate_python({"name": "x", "config": {}}), RunCreate)
    refused = ADAPTER.validate_python({"name": "", "config": {"seed": -1}, "cluster": "moon"})
    assert isinstance(refused, Refused)
    assert [problem.pointer for problem in refused.problems] == ["/name", "/config/seed"]
    assert (refused.valid("cluster"), refused.valid("name"), refused.valid("config")) == ("moon", None, None)
    assert ADAPTER.validate_python([]).valid("cluster") is None


def test_the_document_describes_the_model():
    assert ADAPTER.json_schema() == RunCreate.model_json_schema()
