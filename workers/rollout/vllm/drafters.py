"""A run's drafter in vLLM's words."""

import importlib.util
import json
from pathlib import Path
from typing import Any

from contract.config.drafter import (
    DrafterConfig,
    DraftModelDrafter,
    Eagle3Drafter,
    MtpDrafter,
    NgramDrafter,
    NoDrafter,
    SuffixDrafter,
)

LOOKED_UP = ("ngram", "suffix")
"""Kinds whose drafts may be absent or shorter than asked for."""
_SUFFIX_PACKAGE = "arctic-inference"


def speculative_config(
    drafter: DrafterConfig, draft_folder: Path | None, *, max_batch_size: int, max_new_tokens: int
) -> dict[str, Any] | None:
    """What vLLM takes as speculative_config; None without a drafter. Raises ValueError and ImportError.

    Drafts with weights are drawn from their distribution, not taken greedily: at temperature 1 more are accepted. The
    draft length by batch size is only a beginning, see round_tap; without one vLLM could not change it.
    """
    if isinstance(drafter, NoDrafter):
        return None
    length = drafter.draft_length
    return {
        "num_speculative_tokens": length,
        "num_speculative_tokens_per_batch_size": [(1, max_batch_size, length)],
        **_method(drafter, draft_folder, max_new_tokens),
    }


def _method(drafter: DrafterConfig, folder: Path | None, max_new_tokens: int) -> dict[str, Any]:
    match drafter:
        case NgramDrafter():
            longest, shortest = drafter.max_match_tokens, drafter.min_match_tokens
            return {"method": "ngram", "prompt_lookup_max": longest, "prompt_lookup_min": shortest}
        case SuffixDrafter():
            if importlib.util.find_spec("arctic_inference") is None:
                raise ImportError(
                    f"drafter.kind is suffix, and vLLM's suffix decoding needs {_SUFFIX_PACKAGE}, which is not "
                    "installed: build it as docs/operations/clusters.md says (make setup-suffix); or choose drafter "
                    "ngram, or rollout.kind torch"
                )
            return {
                "method": "suffix",
                "suffix_decoding_max_tree_depth": drafter.max_match_tokens + drafter.draft_length,
                "suffix_decoding_max_cached_requests": max(1, drafter.max_stored_tokens // max_new_tokens),
            }
        case Eagle3Drafter() | MtpDrafter() | DraftModelDrafter():
            if folder is None:
                raise ValueError(f"drafter.kind = {drafter.kind}: needs the folder of a draft, and there is none")
            return {"method": drafter.kind, "model": str(folder), "draft_sample_method": "probabilistic"}
    raise ValueError(f"drafter.kind = {drafter.kind}: not known to the vLLM engine; choose another drafter")


def stage_draft(folder: Path, stage: Path) -> Path:
    """A folder with the draft's files as vLLM is to see them, made below stage.

    vLLM guesses a draft's kind by words in its path, whatever it is told; and the configuration of our module for
    multi-token prediction, being a Qwen3 layer, is read as one of Qwen3.
    """
    staged = stage / "draft"
    staged.mkdir()
    for path in folder.iterdir():
        if path.name != "config.json":
            (staged / path.name).symlink_to(path.resolve())
    document = json.loads((folder / "config.json").read_text())
    if document.get("model_type") == "qwen3_mtp":
        document["model_type"] = "qwen3"
    (staged / "config.json").write_text(json.dumps(document))
    return staged
