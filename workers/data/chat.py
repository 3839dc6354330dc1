"""Prompts as the policy reads them: through the chat template of its tokenizer, or as plain text."""

import logging
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from contract.config.task import DatasetTask
from workers.data.layout import Message

log = logging.getLogger(__name__)

Render = Callable[[Sequence[Message]], str]


def prompt_renderer(task: DatasetTask, policy: Path) -> Render:
    """From a row's messages to the prompt's text. Raises ValueError naming the field, the value and the mend."""
    render = _plain if task.chat_template == "plain" else _templated(task, policy)
    if not task.system_prompt:
        return render
    system: Message = {"role": "system", "content": task.system_prompt}

    def with_system_prompt(messages: Sequence[Message]) -> str:
        return render(messages if messages[0]["role"] == "system" else [system, *messages])

    return with_system_prompt


def _plain(messages: Sequence[Message]) -> str:
    return "\n\n".join(message["content"] for message in messages)


def _templated(task: DatasetTask, policy: Path) -> Render:
    try:
        tokenizer = import_module("transformers").AutoTokenizer.from_pretrained(policy, local_files_only=True)
    except ModuleNotFoundError as error:
        raise ValueError(
            "task.chat_template = policy needs the package transformers: install foredeck[data] on the cluster"
        ) from error
    template = tokenizer.chat_template
    template = template.get("default") if isinstance(template, dict) else template
    if not template:
        raise ValueError(
            f"task.chat_template = policy, but the tokenizer of policy.path = {policy} has no chat template: choose "
            "plain, or put a chat_template.jinja into that folder"
        )
    arguments: dict[str, Any] = {}
    if task.thinking != "default":
        if "enable_thinking" not in template:
            raise ValueError(
                f"task.thinking = {task.thinking}, but the chat template in policy.path = {policy} has no "
                "enable_thinking: choose default"
            )
        arguments["enable_thinking"] = task.thinking == "enabled"

    def render(messages: Sequence[Message]) -> str:
        try:
            return str(
                tokenizer.apply_chat_template(
                    list(messages), chat_template=template, tokenize=False, add_generation_prompt=True, **arguments
                )
            )
        except import_module("jinja2").TemplateError as error:
            roles = ", ".join(message["role"] for message in messages)
            raise ValueError(
                f"the chat template in policy.path = {policy} refuses messages of {roles}: {error}. Mend "
                "task.system_prompt or the rows, or choose task.chat_template = plain"
            ) from error

    return render
