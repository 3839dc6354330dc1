"""Megatron-core 0.16.1 on machines without a GPU.

It asks for tensors on "cuda", for streams and for CUDA's random state, wherever it runs. prepare() answers those asked
for by name, and on_processors() those asked for as a device while the trainer computes. Where there is a GPU both do
nothing. What is replaced is listed in docs/decisions, with what was never run on a GPU.
"""

import contextlib
import functools
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.overrides import TorchFunctionMode


def has_gpu() -> bool:
    """Whether ranks compute on GPUs."""
    return torch.cuda.is_available()


def device() -> torch.device:
    """Where this rank's tensors live."""
    return torch.device("cuda", torch.cuda.current_device()) if has_gpu() else torch.device("cpu")


def on_processors() -> contextlib.AbstractContextManager[Any]:
    """Within it, tensors asked for on a GPU are made on the processor; nothing changes where there is a GPU."""
    return contextlib.nullcontext() if has_gpu() else _OnProcessors()


@functools.cache
def prepare() -> None:
    """Replace what Megatron-core calls of CUDA by name; once a process, before any part of it is built."""
    if has_gpu():
        return
    _replace_streams()
    _replace_random_state()
    _complete_mixtures()
    _keep_steps_apart()


class _OnProcessors(TorchFunctionMode):
    """Sends what is meant for a GPU to the processor."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        named = dict(kwargs or {})
        if _is_gpu(named.get("device")):
            named["device"] = "cpu"
        if func is torch.Tensor.cuda:
            return args[0]
        if func is torch.Tensor.type and len(args) == 1 and not named:
            # Its optimisers tell parameters by the type's name, and know GPUs' only.
            return func(*args).replace("torch.", "torch.cuda.", 1)
        return func(*args, **named)


def _is_gpu(wanted: object) -> bool:
    if isinstance(wanted, torch.device):
        return wanted.type == "cuda"
    return isinstance(wanted, str) and wanted.startswith("cuda")


class _Stream:
    """One that has always finished."""

    def __init__(self, *_: Any, **__: Any) -> None: ...

    def wait_stream(self, *_: Any) -> None: ...

    def wait_event(self, *_: Any) -> None: ...

    def synchronize(self) -> None: ...

    def record_event(self, *_: Any) -> "_Event":
        return _Event()


class _Event:
    """One that has always happened."""

    def __init__(self, *_: Any, **__: Any) -> None: ...

    def record(self, *_: Any) -> None: ...

    def wait(self, *_: Any) -> None: ...

    def synchronize(self) -> None: ...


def _replace_streams() -> None:
    cuda, stream = torch.cuda, _Stream()
    cuda.current_device = lambda: torch.device("cpu")  # type: ignore[assignment,return-value]
    cuda.synchronize = lambda *_: None  # type: ignore[assignment]
    cuda.Stream, cuda.Event = _Stream, _Event  # type: ignore[misc,assignment]
    cuda.current_stream = cuda.default_stream = lambda *_: stream  # type: ignore[assignment]
    cuda.stream = lambda *_: contextlib.nullcontext()  # type: ignore[assignment]


def _replace_random_state() -> None:
    """Recomputation restores the random state that the forward pass saw: the processor's, then."""
    from megatron.core.tensor_parallel import random  # noqa: PLC0415 - tells of a missing package first

    # The tracker for inference draws from no state of CUDA; this trainer drops out nothing and draws no weights.
    random.initialize_rng_tracker(inference_rng_tracker=True, force_reset=True)
    random._get_cuda_rng_state = lambda *_, **__: torch.get_rng_state()
    random._set_cuda_rng_state = lambda state, *_, **__: torch.set_rng_state(state)


def _complete_mixtures() -> None:
    """Mixtures name a kernel of Transformer Engine that is absent, and copy counts to the host, where they are."""
    from megatron.core.transformer.moe import moe_utils, token_dispatcher  # noqa: PLC0415

    if not hasattr(moe_utils, "te_general_gemm"):
        moe_utils.te_general_gemm = None

    def to_host(tensor: Any, as_numpy: bool = False, record_stream: bool = False) -> Any:
        return tensor.numpy() if as_numpy and torch.is_tensor(tensor) else tensor

    token_dispatcher.maybe_move_tensor_to_cpu = to_host


def _keep_steps_apart() -> None:
    """PyTorch's Adam counts steps in a tensor for each parameter, Transformer Engine's in the parameter group.

    The distributed optimiser was written for the latter: it restores moments without the count, and hands all
    parameters one and the same count tensor, which each would then advance.
    """
    from megatron.core.optimizer.distrib_optimizer import DistributedOptimizer  # noqa: PLC0415

    restore, load = DistributedOptimizer._set_main_param_and_optimizer_states, DistributedOptimizer.load_state_dict

    def restore_with_step(self: Any, model_param: torch.Tensor, tensors: dict[str, Any]) -> None:
        group, order = self.model_param_group_index_map[model_param]
        state = self.optimizer.state[self.optimizer.param_groups[group]["params"][order]]
        restore(self, model_param, {"step": state["step"], **tensors} if "step" in state else tensors)

    def load_with_own_steps(self: Any, state_dict: Any) -> None:
        load(self, state_dict)
        for state in self.optimizer.state.values():
            if "step" in state:
                state["step"] = state["step"].clone()

    DistributedOptimizer._set_main_param_and_optimizer_states = restore_with_step
    DistributedOptimizer.load_state_dict = load_with_own_steps
