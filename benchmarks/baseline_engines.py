"""The engines that `benchmarks.baselines` compares, each with one way to generate on one thread.

What they share: temperature 1 over the whole vocabulary, the same prompts in the same order, and a clock around
everything between the prompts' token ids and the responses'. Foredeck's engine also returns the log-probability of each
token, which training needs; the others are not asked for it, which is to their advantage.
"""

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

import torch
import transformers

from workers.data.tokenizer import Tokenizer
from workers.model.hf_checkpoint import load_policy
from workers.rollout.engine import SamplingParams
from workers.rollout.torch_engine import TorchRolloutEngine

Precision = Literal["bfloat16", "float32"]

_VLLM_CHILD = Path(__file__).with_name("vllm_child.py")
_VLLM_ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",  # the scheduler of the operating system places it, as it does the others
    "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_LEVEL": "WARNING",
    "HF_HUB_OFFLINE": "1",
}
_MESSAGE_CHARACTERS = 1500


@dataclass(frozen=True, slots=True)
class Generated:
    """Responses in the order of the prompts, each up to and with its end of sequence."""

    responses: list[list[int]]
    seconds: float
    cpu_s: float
    """Processor time of all threads; seconds below it mean that more than one was busy."""


class EngineFailedError(RuntimeError):
    """An engine that cannot run here; the message says why."""


class Engine(Protocol):
    def generate(self, prompts: Sequence[list[int]], max_new_tokens: int, seed: int) -> Generated: ...

    def close(self) -> None: ...


class ForedeckEngine:
    """Autoregressive, refilling a row as soon as its response has ended."""

    def __init__(self, folder: Path, tokenizer: Tokenizer, batch_size: int, precision: Precision) -> None:
        policy = load_policy(folder)
        self._engine = TorchRolloutEngine(policy.config, tokenizer.eos_id, batch_size, precision, drafting=None)
        self._engine.update_policy(policy.state_dict())

    def generate(self, prompts: Sequence[list[int]], max_new_tokens: int, seed: int) -> Generated:
        started, started_cpu = time.perf_counter(), time.process_time()
        result = self._engine.generate(prompts, 1, SamplingParams(1.0, max_new_tokens, seed))
        seconds, cpu_s = time.perf_counter() - started, time.process_time() - started_cpu
        return Generated([completion.token_ids for completion in result.completions], seconds, cpu_s)

    def close(self) -> None:
        pass


class TransformersEngine:
    """`generate` of transformers: static batches with padding on the left, each as long as its longest response."""

    def __init__(self, folder: Path, tokenizer: Tokenizer, batch_size: int, precision: Precision) -> None:
        transformers.utils.logging.disable_progress_bar()
        self._batch_size, self._tokenizer = batch_size, tokenizer
        self._model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=getattr(torch, precision)).eval()

    def generate(self, prompts: Sequence[list[int]], max_new_tokens: int, seed: int) -> Generated:
        torch.manual_seed(seed)
        config = transformers.GenerationConfig(
            do_sample=True,
            temperature=1.0,
            top_k=0,
            top_p=1.0,
            use_cache=True,
            max_new_tokens=max_new_tokens,
            eos_token_id=self._tokenizer.eos_id,
            pad_token_id=self._tokenizer.pad_id,
        )
        started, started_cpu = time.perf_counter(), time.process_time()
        responses: list[list[int]] = []
        for start in range(0, len(prompts), self._batch_size):
            responses += self._batch(prompts[start : start + self._batch_size], config)
        return Generated(responses, time.perf_counter() - started, time.process_time() - started_cpu)

    def _batch(self, prompts: Sequence[list[int]], config: transformers.GenerationConfig) -> list[list[int]]:
        longest = max(map(len, prompts))
        padding = [longest - len(prompt) for prompt in prompts]
        pad_id = self._tokenizer.pad_id
        token_ids = torch.tensor([[pad_id] * n + prompt for n, prompt in zip(padding, prompts, strict=True)])
        mask = torch.tensor([[0] * n + [1] * (longest - n) for n in padding])
        output = self._model.generate(token_ids, attention_mask=mask, generation_config=config)
        return [up_to_end(row, self._tokenizer.eos_id) for row in output[:, longest:].tolist()]

    def close(self) -> None:
        pass


class VllmEngine:
    """vLLM's CPU build in a Python of its own, all of it on one thread of one process; continuous batching."""

    def __init__(
        self,
        python: Path,
        folder: Path,
        tokenizer: Tokenizer,
        batch_size: int,
        max_model_len: int,
        precision: Precision,
        *,
        is_compiled: bool,
    ) -> None:
        self._eos_id = tokenizer.eos_id
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115 - open as long as the engine
        command = [str(python), "-P", str(_VLLM_CHILD), "--policy", str(folder), "--precision", precision]
        command += ["--batch-size", str(batch_size), "--max-model-len", str(max_model_len)]
        self._process = subprocess.Popen(
            command if is_compiled else [*command, "--eager"],
            env={name: os.environ[name] for name in ("PATH", "HOME")} | _VLLM_ENVIRONMENT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        self._reply()

    def generate(self, prompts: Sequence[list[int]], max_new_tokens: int, seed: int) -> Generated:
        """The seed goes unused: a request with a seed of its own is slower in vLLM."""
        assert self._process.stdin
        request = {"prompts": prompts, "max_new_tokens": max_new_tokens, "eos_token_id": self._eos_id}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        reply = self._reply()
        return Generated(reply["responses"], reply["seconds"], reply["cpu_s"])

    def _reply(self) -> dict:
        assert self._process.stdout
        line = self._process.stdout.readline()
        if line:
            return json.loads(line)
        status = self._process.wait()
        self._log.seek(0)
        message = self._log.read()[-_MESSAGE_CHARACTERS:]
        self.close()
        raise EngineFailedError(f"vLLM ended with {status}: {message}")

    def close(self) -> None:
        """End the process, which it does when its input ends."""
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()
        self._log.close()


def up_to_end(token_ids: list[int], eos_id: int) -> list[int]:
    """The response in a row that is padded behind its end of sequence."""
    return token_ids[: token_ids.index(eos_id) + 1] if eos_id in token_ids else token_ids
