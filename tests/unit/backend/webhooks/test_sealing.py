import pytest
from cryptography.fernet import Fernet

from backend.webhooks.sealing import UnreadableError, seal, unseal

OLD, NEW = Fernet.generate_key().decode(), Fernet.generate_key().decode()


def test_with_a_key_the_secret_cannot_be_seen():
    stored = seal("whsec_abc", [NEW])
    assert "whsec_abc" not in stored
    assert unseal(stored, [NEW]) == "whsec_abc"
    assert seal("whsec_abc", [NEW]) != stored


def test_keys_can_be_exchanged_and_introduced_later():
    assert unseal(seal("whsec_abc", [OLD]), [NEW, OLD]) == "whsec_abc"
    assert unseal(seal("whsec_abc", []), [NEW]) == "whsec_abc"


@pytest.mark.parametrize("keys", [[], [NEW]])
def test_without_its_key_it_says_what_to_do(keys):
    with pytest.raises(UnreadableError, match="FOREDECK_ENCRYPTION_KEYS"):
        unseal(seal("whsec_abc", [OLD]), keys)
