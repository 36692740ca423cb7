"""The key of service account tokens."""

from __future__ import annotations

import base64
import sys

import pytest
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicNumbers
from cryptography.hazmat.primitives.hashes import SHA256

from bayplan.apiserver.rest.signing_key import SigningKey, decoded
from bayplan.base.errors import MissingExtra


def test_the_published_key_verifies_signatures() -> None:
    key = SigningKey()
    public = key.public
    numbers = RSAPublicNumbers(*(int.from_bytes(decoded(str(public[name]))) for name in ("e", "n")))
    numbers.public_key().verify(decoded(key.sign("text")), b"text", PKCS1v15(), SHA256())
    assert (public["kty"], public["alg"], public["kid"]) == ("RSA", "RS256", key.id)


def test_only_the_signature_of_the_same_text_by_the_same_key_is_verified() -> None:
    key, other = SigningKey(), SigningKey()
    signature = key.sign("text")
    assert key.verifies("text", signature)
    assert not key.verifies("another text", signature)
    assert not other.verifies("text", signature)
    assert not key.verifies("text", signature[:-1])
    assert not key.verifies("text", "a")
    # 2,048 bits are 342 characters, of which the last one has 2 unused bits.
    spelled = signature[:-1] + chr(ord(signature[-1]) + 1)
    assert base64.urlsafe_b64decode(spelled + "==") == decoded(signature)
    assert not key.verifies("text", spelled)


def test_a_missing_package_is_reported_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.asymmetric.padding", None)
    with pytest.raises(MissingExtra, match=r"\.\[server\]"):
        SigningKey().sign("text")
