"""The dataset task: rows of a file or of the hub, read and judged before the run takes anything of the cluster."""

import hashlib
import json
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from contract.config import RunConfig
from contract.config.dataset import HeldOutShare
from contract.config.policy import CheckpointPolicy
from contract.config.task import DatasetTask
from workers.data.chat import prompt_renderer
from workers.data.dataset_rows import SourceReader, held_out
from workers.data.problem import Problem, Split
from workers.data.tokenizer import load_tokenizer
from workers.model.hf_checkpoint import read_json
from workers.seeds import derive_seed

log = logging.getLogger(__name__)


class DatasetData:
    """The usable rows of a task's sources. Raises ValueError naming field, value and mend where there are none."""

    def __init__(self, config: RunConfig) -> None:
        task, policy = config.task, config.policy
        assert isinstance(task, DatasetTask)
        assert isinstance(policy, CheckpointPolicy)
        folder = Path(policy.path)
        tokenizer = load_tokenizer(folder)
        reader = SourceReader(prompt_renderer(task, folder), tokenizer, task.max_prompt_tokens)
        self._train, self._validation = _problems(task, reader)
        _check_room(reader.longest_tokens, config.rollout.max_new_tokens, _num_positions(folder))
        self._seed, self._left_out = config.seed, reader.left_out
        log.info(
            "The dataset has %d prompts for training and %d for validation.", len(self._train), len(self._validation)
        )

    @property
    def identity(self) -> Mapping[str, Any]:
        """A digest of the prompts as the policy reads them."""
        prompts = [[problem.prompt for problem in problems] for problems in (self._train, self._validation)]
        return {"kind": "dataset", "prompts_sha256": hashlib.sha256(json.dumps(prompts).encode()).hexdigest()}

    @property
    def metrics(self) -> Mapping[str, float]:
        used = {"data/num_train_prompts": len(self._train), "data/num_validation_prompts": len(self._validation)}
        left_out = {f"data/num_rows_{reason}": count for reason, count in self._left_out.items()}
        return {name: float(count) for name, count in (used | left_out).items()}

    def split(self, split: Split) -> "ShuffledProblems":
        rows = self._validation if split == "validation" else self._train
        return ShuffledProblems(rows, derive_seed(self._seed, "dataset", split))


def _problems(task: DatasetTask, reader: SourceReader) -> tuple[list[Problem], list[Problem]]:
    """(for training, for validation)."""
    if isinstance(task.validation, HeldOutShare):
        rows = reader.read(task.train, "task.train")
        if len(rows) < 2:
            raise ValueError(
                "task.train has a single prompt, of which no share can be held out: give task.validation a source"
            )
        chosen = held_out(rows, task.validation.share_fraction)
        train = [row.problem for row in rows if row.text not in chosen]
        return train, [row.problem for row in rows if row.text in chosen]
    validation = reader.read(task.validation, "task.validation")
    rows = reader.read(task.train, "task.train", taken={row.text for row in validation})
    return [row.problem for row in rows], [row.problem for row in validation]


def _check_room(longest_tokens: int, max_new_tokens: int, num_positions: int) -> None:
    if longest_tokens + max_new_tokens > num_positions:
        raise ValueError(
            f"task.max_prompt_tokens: the longest prompt has {longest_tokens:,} tokens, which with "
            f"rollout.max_new_tokens = {max_new_tokens:,} is more than the policy's {num_positions:,} positions: lower "
            "one of the two"
        )


def _num_positions(policy: Path) -> int:
    """Tokens of the longest sequence that the policy is made for, with YaRN those that it is stretched to."""
    config: dict[str, Any] = read_json(policy / "config.json")
    positions = int(config.get("max_position_embeddings") or 32_768)
    scaling = config.get("rope_parameters") or config.get("rope_scaling") or {}
    if scaling.get("rope_type", scaling.get("type")) != "yarn":
        return positions
    original = scaling.get("original_max_position_embeddings") or positions
    return max(positions, round(original * scaling.get("factor", 1)))


class ShuffledProblems:
    """Rows again and again by position, every epoch in another order."""

    def __init__(self, rows: Sequence[Problem], seed: int) -> None:
        self._rows, self._seed = rows, seed
        self._epoch, self._order = -1, np.zeros(0, dtype=np.int64)

    def problem(self, index: int) -> Problem:
        """The problem at a position from 0, which is of epoch index // rows."""
        epoch, place = divmod(index, len(self._rows))
        if epoch != self._epoch:
            # RandomState is the one generator of numpy whose numbers no version changes.
            order = np.random.RandomState(derive_seed(self._seed, epoch)).permutation(len(self._rows))
            self._epoch, self._order = epoch, order
        return self._rows[int(self._order[place])]

    def problems(self, start: int, count: int) -> list[Problem]:
        """The problems at positions start to start + count - 1."""
        return [self.problem(index) for index in range(start, start + count)]

    def distinct(self, count: int) -> list[Problem]:
        """The first problems, each row once at most."""
        return self.problems(0, min(count, len(self._rows)))
