"""Prompts through the tokenizer's own chat template, which transformers renders."""

import pytest

from contract.config.task import DatasetTask
from workers.data.chat import prompt_renderer

USER = [{"role": "user", "content": "one plus two"}]
TALK = [{"role": "system", "content": "be brief"}, *USER]


def task(**given):
    return DatasetTask.model_validate({"train": {"kind": "jsonl", "path": "/data/a.jsonl"}, **given})


@pytest.mark.parametrize(
    ("given", "messages", "prompt"),
    [
        ({}, USER, "<user: one plus two><assistant: "),
        ({}, TALK, "<system: be brief><user: one plus two><assistant: "),
        ({"system_prompt": "be kind"}, USER, "<system: be kind><user: one plus two><assistant: "),
        ({"system_prompt": "be kind"}, TALK, "<system: be brief><user: one plus two><assistant: "),
        ({"thinking": "disabled"}, USER, "<user: one plus two><assistant: (no thought) "),
        ({"thinking": "enabled"}, USER, "<user: one plus two><assistant: "),
        ({"chat_template": "plain"}, USER, "one plus two"),
        ({"chat_template": "plain", "system_prompt": "be kind"}, USER, "be kind\n\none plus two"),
        ({"chat_template": "plain"}, TALK, "be brief\n\none plus two"),
    ],
)
def test_a_prompt_is_what_the_template_makes_of_its_messages(policy_folder, chat_template, given, messages, prompt):
    assert prompt_renderer(task(**given), policy_folder(chat_template))(messages) == prompt


def test_a_tokenizer_without_a_template_is_told_with_the_mend(policy_folder):
    with pytest.raises(
        ValueError, match=r"task\.chat_template = policy, but .*policy has no chat template: choose plain"
    ):
        prompt_renderer(task(), policy_folder())


def test_thinking_that_the_template_does_not_know_is_refused(policy_folder):
    folder = policy_folder("{{ messages[0].content }}")
    with pytest.raises(ValueError, match=r"task\.thinking = disabled, but .* has no enable_thinking: choose default"):
        prompt_renderer(task(thinking="disabled"), folder)
    assert prompt_renderer(task(), folder)(USER) == "one plus two"


def test_what_the_template_refuses_is_told_with_its_words(policy_folder):
    template = "{% if messages[0].role == 'system' %}{{ raise_exception('no system here') }}{% endif %}x"
    render = prompt_renderer(task(system_prompt="be kind"), policy_folder(template))
    with pytest.raises(
        ValueError, match=r"refuses messages of system, user: no system here\. Mend task\.system_prompt"
    ):
        render(USER)


def test_a_template_reaches_nothing_outside_its_sandbox(policy_folder):
    folder = policy_folder("{{ ''.__class__.__mro__[1].__subclasses__() }}")
    with pytest.raises(ValueError, match="access to attribute '__class__'"):
        prompt_renderer(task(), folder)(USER)
