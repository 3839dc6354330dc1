"""Gates over HTTP."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, Response

from backend.auth.guard import RunReader, RunWriter
from backend.deps import SessionDep, SettingsDep
from backend.gates import service
from backend.gates.junit import junit
from backend.gates.markdown import markdown
from backend.gates.schemas import GateEvaluate, GateEvaluationRead, RunGates

router = APIRouter(prefix="/runs/{run_id}", tags=["gates"])

EvaluationId = Annotated[UUID | None, Query(description="The evaluation to show; the newest without it.")]


@router.post("/gates/evaluate", operation_id="gates_evaluate", summary="Judge a run by gates now")
def evaluate(run_id: UUID, body: GateEvaluate, writer: RunWriter, session: SessionDep) -> GateEvaluationRead:
    """By the given gates, or by those it was launched with. What comes of it is kept; of a run that has ended it
    becomes the run's verdict."""
    return service.evaluate(session, run_id, body, writer)


@router.get("/gates", operation_id="gates_get", summary="A run's gates and what came of them")
def get_gates(run_id: UUID, _: RunReader, session: SessionDep, evaluation_id: EvaluationId = None) -> RunGates:
    return service.read(session, run_id, evaluation_id)


@router.get(
    "/gates.xml",
    operation_id="gates_get_junit",
    summary="What came of a run's gates as a JUnit report",
    response_class=Response,
    responses={200: {"content": {"application/xml": {"schema": {"type": "string"}}}}},
)
def get_junit(
    run_id: UUID, _: RunReader, session: SessionDep, settings: SettingsDep, evaluation_id: EvaluationId = None
) -> Response:
    report = service.report(session, run_id, evaluation_id, settings.public_url)
    return Response(junit(report), media_type="application/xml")


@router.get(
    "/gates.md",
    operation_id="gates_get_markdown",
    summary="What came of a run's gates as a summary in Markdown",
    response_class=Response,
    responses={200: {"content": {"text/markdown": {"schema": {"type": "string"}}}}},
)
def get_markdown(
    run_id: UUID, _: RunReader, session: SessionDep, settings: SettingsDep, evaluation_id: EvaluationId = None
) -> Response:
    report = service.report(session, run_id, evaluation_id, settings.public_url)
    return Response(markdown(report), media_type="text/markdown; charset=utf-8")
