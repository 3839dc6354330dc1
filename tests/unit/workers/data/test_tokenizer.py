import json

import pytest
from transformers import AutoTokenizer

from contract.config.task import ArithmeticTask
from workers.data.arithmetic import ArithmeticProblems
from workers.data.tokenizer import character_tokenizer, load_tokenizer


def test_one_token_a_character_and_back():
    tokenizer = character_tokenizer()
    assert tokenizer.vocabulary_size == 48
    assert tokenizer.encode("01") == [2, 3]
    for problem in ArithmeticProblems(ArithmeticTask(), 0, "train").problems(0, 20):
        text = problem.prompt + problem.solution
        ids = tokenizer.encode(text)
        assert len(ids) == len(text)
        assert tokenizer.decode([*ids, tokenizer.eos_id, tokenizer.pad_id]) == text
    assert tokenizer.token_text(tokenizer.eos_id) == "<eos>"
    assert tokenizer.token_text(tokenizer.encode(" ")[0]) == " "


def test_unknown_characters_are_named():
    with pytest.raises(ValueError, match="'1X'"):
        character_tokenizer().encode("1X")


def test_a_saved_tokenizer_is_loaded_by_us_and_by_transformers(tmp_path):
    tokenizer = character_tokenizer()
    tokenizer.save(tmp_path)
    ours, theirs = load_tokenizer(tmp_path), AutoTokenizer.from_pretrained(tmp_path)
    assert (ours.eos_id, ours.pad_id) == (tokenizer.eos_id, tokenizer.pad_id) == (1, 0)
    assert (theirs.eos_token_id, theirs.pad_token_id) == (1, 0)
    ids = tokenizer.encode("12+34=")
    assert ours.encode("12+34=") == ids == theirs.encode("12+34=", add_special_tokens=False)
    assert theirs.decode(ids) == "12+34="


def test_special_tokens_come_from_the_configuration_first(tmp_path):
    character_tokenizer().save(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({"eos_token_id": [5, 6]}))
    assert load_tokenizer(tmp_path).eos_id == 5


def test_a_folder_without_what_is_needed_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"no tokenizer\.json in"):
        load_tokenizer(tmp_path)
    character_tokenizer().save(tmp_path)
    (tmp_path / "tokenizer_config.json").unlink()
    with pytest.raises(ValueError, match="eos_token_id"):
        load_tokenizer(tmp_path)
