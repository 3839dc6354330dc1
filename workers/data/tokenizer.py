"""Text to token ids and back: the built-in character vocabulary, or the tokenizer.json of a Hugging Face checkpoint."""

import json
from collections.abc import Sequence
from pathlib import Path

from tokenizers import Regex, decoders, models, pre_tokenizers
from tokenizers import Tokenizer as Backend

TOKENIZER_FILE = "tokenizer.json"

_PAD, _EOS = "<pad>", "<eos>"
_CHARACTERS = "0123456789+=:;># *-,abcdefghijklmnopqrstuvwxyz"


class Tokenizer:
    """Encodes and decodes with one `tokenizers.Tokenizer`, and knows its special tokens."""

    def __init__(self, backend: Backend, eos_id: int, pad_id: int) -> None:
        self._backend = backend
        self.eos_id = eos_id
        """Ends a response."""
        self.pad_id = pad_id
        """Fills up batches; always masked."""

    @property
    def vocabulary_size(self) -> int:
        return self._backend.get_vocab_size()

    def encode(self, text: str) -> list[int]:
        """Token ids without special tokens. Raises ValueError for a character that the vocabulary lacks."""
        try:
            return list(self._backend.encode(text, add_special_tokens=False).ids)
        except Exception as error:  # the backend raises bare Exception
            raise ValueError(f"cannot encode {text!r}: {error}") from error

    def decode(self, token_ids: Sequence[int]) -> str:
        """Text without special tokens."""
        return str(self._backend.decode(list(token_ids), skip_special_tokens=True))

    def verbatim(self, token_ids: Sequence[int]) -> str:
        """Text with special tokens by their names."""
        return str(self._backend.decode(list(token_ids), skip_special_tokens=False))

    def token_text(self, token_id: int) -> str:
        """One token as it should be shown, special tokens by their name."""
        return self.verbatim([token_id])

    def save(self, folder: Path) -> None:
        """Write tokenizer.json and the special tokens' file into a checkpoint folder."""
        self._backend.save(str(folder / TOKENIZER_FILE))
        tokens = {
            "eos_token": self._backend.id_to_token(self.eos_id),
            "pad_token": self._backend.id_to_token(self.pad_id),
        }
        content = {"tokenizer_class": "PreTrainedTokenizerFast", **tokens}
        (folder / "tokenizer_config.json").write_text(json.dumps(content, indent=2))


def character_tokenizer() -> Tokenizer:
    """The built-in vocabulary of 48 symbols: padding is 0, end of sequence 1, then one token a character."""
    vocabulary = {symbol: index for index, symbol in enumerate([_PAD, _EOS, *_CHARACTERS])}
    backend = Backend(models.WordLevel(vocabulary))
    backend.pre_tokenizer = pre_tokenizers.Split(Regex("."), "isolated")
    backend.decoder = decoders.Fuse()
    backend.add_special_tokens([_PAD, _EOS])
    return Tokenizer(backend, eos_id=vocabulary[_EOS], pad_id=vocabulary[_PAD])


def load_tokenizer(folder: Path) -> Tokenizer:
    """Load the tokenizer of a checkpoint folder in Hugging Face layout.

    The end of sequence comes from generation_config.json, config.json or tokenizer_config.json, in this order; padding
    likewise, and is the end of sequence where none is named. Raises ValueError naming the folder and what it lacks.
    """
    file = folder / TOKENIZER_FILE
    if not file.is_file():
        raise ValueError(f"no {TOKENIZER_FILE} in {folder}: give the folder of a Hugging Face checkpoint")
    backend = Backend.from_file(str(file))
    eos_id = _special_id(backend, folder, "eos")
    if eos_id is None:
        raise ValueError(f"no end of sequence token is named in {folder}: add eos_token_id to its config.json")
    pad_id = _special_id(backend, folder, "pad")
    return Tokenizer(backend, eos_id=eos_id, pad_id=eos_id if pad_id is None else pad_id)


def _special_id(backend: Backend, folder: Path, role: str) -> int | None:
    for name in ("generation_config.json", "config.json"):
        value = _read(folder / name).get(f"{role}_token_id")
        value = value[0] if isinstance(value, list) and value else value
        if isinstance(value, int):
            return value
    token = _read(folder / "tokenizer_config.json").get(f"{role}_token")
    token = token.get("content") if isinstance(token, dict) else token
    return backend.token_to_id(token) if isinstance(token, str) else None


def _read(file: Path) -> dict[str, object]:
    content = json.loads(file.read_text()) if file.is_file() else {}
    return content if isinstance(content, dict) else {}
