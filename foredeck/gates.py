"""Gates of runs: judging, reading, reports."""

from collections.abc import Iterable
from uuid import UUID

from foredeck.models import Gate, GateEvaluation, RunGates
from foredeck.transport import Transport


class Gates:
    """`Foredeck.gates`."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def evaluate(self, run_id: UUID, gates: Iterable[Gate] = ()) -> GateEvaluation:
        """Judges these gates, or without any the run's own again, by what there is. The verdict stays with the run."""
        given = [gate.model_dump(mode="json") for gate in gates]
        body = {"gates": given} if given else {}
        return self._transport.read(
            GateEvaluation, "POST", f"/runs/{run_id}/gates/evaluate", json=body, is_repeatable=True
        )

    def verdict(self, run_id: UUID, evaluation_id: UUID | None = None) -> RunGates:
        """The newest evaluation, or the one asked for; `pending` until the run has ended and was judged."""
        return self._transport.read(RunGates, "GET", f"/runs/{run_id}/gates", params=_of(evaluation_id))

    def junit(self, run_id: UUID, evaluation_id: UUID | None = None) -> str:
        """The evaluation as JUnit XML, a test case for each gate."""
        return self._transport.ask("GET", f"/runs/{run_id}/gates.xml", params=_of(evaluation_id)).text

    def markdown(self, run_id: UUID, evaluation_id: UUID | None = None) -> str:
        """The evaluation as a page of Markdown."""
        return self._transport.ask("GET", f"/runs/{run_id}/gates.md", params=_of(evaluation_id)).text


def _of(evaluation_id: UUID | None) -> dict[str, str | None]:
    return {"evaluation_id": None if evaluation_id is None else str(evaluation_id)}
