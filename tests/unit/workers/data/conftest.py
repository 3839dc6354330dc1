"""Policies' folders as far as data needs them: a tokenizer, its chat template and the number of positions."""

import json

import pytest

from workers.data.tokenizer import character_tokenizer

# As Qwen3's: a turn a message, and an empty thought where thinking is off.
TEMPLATE = """{%- for message in messages -%}
<{{ message.role }}: {{ message.content }}>
{%- endfor -%}
{%- if add_generation_prompt -%}
<assistant: {% if enable_thinking is defined and enable_thinking is false %}(no thought) {% endif %}
{%- endif -%}"""


@pytest.fixture
def chat_template():
    return TEMPLATE


@pytest.fixture
def policy_folder(tmp_path):
    """Makes the folder, without a chat template where it is None."""

    def make(template=None, positions=2048, **config):
        folder = tmp_path / "policy"
        folder.mkdir(exist_ok=True)
        character_tokenizer().save(folder)
        (folder / "config.json").write_text(json.dumps({"max_position_embeddings": positions} | config))
        if template is not None:
            (folder / "chat_template.jinja").write_text(template)
        return folder

    return make
