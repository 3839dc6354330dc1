"""The action's steps."""

import os
from pathlib import Path
from uuid import UUID, uuid4

from cli.errors import CommandError, ExitCode, as_command_error
from cli.github.inputs import Inputs
from cli.github.runner import annotate, deaf, set_output
from cli.launching import Waiting
from cli.output import console, print_error
from cli.service import connect
from foredeck import Foredeck, ForedeckError

LAUNCH_LABEL = "github/launch"
INTERRUPTED = 130
VERDICTS = {
    ExitCode.SUCCEEDED: "passed",
    ExitCode.GATE_FAILED: "gate_failed",
    ExitCode.FAILED: "failed",
    ExitCode.STOPPED: "stopped",
    ExitCode.TIMEOUT: "timeout",
    ExitCode.INFRASTRUCTURE: "infrastructure",
    ExitCode.USAGE: "refused",
}


def launch() -> int:
    """Launches the run. Its key is known before, so that a run whose answer was lost is found and stopped."""
    if not os.environ.get("FOREDECK_TOKEN"):
        raise CommandError("The token is empty: workflows of pull requests from forks are given no secrets.")
    body = Inputs.from_environment(os.environ).body(os.environ)
    key = str(uuid4())
    set_output("key", key)
    body["labels"] |= {LAUNCH_LABEL: key}
    with connect() as service:
        run = service.runs.launch(body, idempotency_key=key)
        set_output("run-id", str(run.id))
        set_output("run-url", f"{service.url}/runs/{run.id}")
        with deaf():
            console.print(f"{run.name}: {service.url}/runs/{run.id}", markup=False, soft_wrap=True)
    return ExitCode.SUCCEEDED


def judge() -> int:
    """Waits for the run's end and the verdict on its gates, and exits with them."""
    inputs = Inputs.from_environment(os.environ)
    run_id = UUID(os.environ["FOREDECK_ACTION_RUN_ID"])
    waiting = Waiting(
        follow=False,
        timeout_s=inputs.timeout_s,
        junit=Path(inputs.junit) if inputs.junit else None,
        summary=Path(os.environ["GITHUB_STEP_SUMMARY"]),
        stop_on_interrupt=True,
        is_json=False,
    )
    with connect() as service:
        with deaf():
            code = waiting.until_ended(service, service.runs.get(run_id))
        if code:
            _say_why(service, run_id)
    set_output("verdict", VERDICTS[ExitCode(code)])
    return code


def _say_why(service: Foredeck, run_id: UUID) -> None:
    run = service.runs.get(run_id)
    if run.status != "succeeded":
        annotate(f"Run {run.status}", run.status_reason)
    evaluation = service.gates.verdict(run_id).evaluation
    for result in evaluation.results if evaluation else ():
        if not result.is_passed:
            annotate(result.name, result.reason)


def stop() -> int:
    """Stops what the job no longer waits for: it was cancelled, or its time was up."""
    key = os.environ.get("FOREDECK_ACTION_KEY")
    with connect() as service:
        for run in service.runs.list(labels={LAUNCH_LABEL: key}) if key else ():
            if not run.is_ended:
                service.runs.stop(run.id)
                with deaf():
                    console.print(f"{run.name} is asked to stop.", markup=False, soft_wrap=True)
    return ExitCode.SUCCEEDED


STEPS = {"launch": launch, "judge": judge, "stop": stop}


def run(step: str) -> int:
    """The exit code; errors are printed, annotated, and in the summary."""
    try:
        return STEPS[step]()
    except KeyboardInterrupt:
        return INTERRUPTED
    except (CommandError, ForedeckError) as caught:
        error = caught if isinstance(caught, CommandError) else as_command_error(caught)
        with deaf():
            print_error(error)
        annotate("Foredeck", str(error))
        set_output("verdict", VERDICTS[error.code])
        with Path(os.environ["GITHUB_STEP_SUMMARY"]).open("a") as file:
            file.write("### Foredeck: no verdict\n\n" + "".join(f"    {line}\n" for line in str(error).splitlines()))
        return error.code
