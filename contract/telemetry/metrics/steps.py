"""Where a step's time goes."""

from collections.abc import Iterator

from contract.telemetry.metrics.metric import Metric
from contract.telemetry.stages import STEP_STAGES


def steps() -> Iterator[Metric]:
    """Stages, progress and the way of the weights."""
    yield Metric("time/step_s", "s", "Wall time of the whole step.", "sum", "loop")
    for stage in STEP_STAGES:
        yield Metric(f"time/{stage.value}_s", "s", f"Wall time of the step's {stage.value} stage.", "sum", "loop")
    yield Metric("time/other_s", "s", "Step time outside every stage.", "sum", "loop")
    yield Metric("progress/num_tokens_total", "tokens", "Response tokens since the run began.", "sum", "loop")
    yield Metric(
        "progress/elapsed_s",
        "s",
        "Time of all steps up to this one, attempts added up.",
        "sum",
        "loop",
    )

    yield Metric(
        "weight_sync/transfer_s", "s", "Wall time in which all engines got the step's weights.", "last", "loop"
    )
    yield Metric(
        "weight_sync/size_bytes", "B", "Bytes of weights that each engine got, the draft's among them.", "sum", "loop"
    )
    yield Metric("weight_sync/num_buckets", "1", "Buckets in which they came.", "sum", "loop")
