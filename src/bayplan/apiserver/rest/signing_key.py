"""The RSA key that signs service account tokens (RS256), and its public half as a JSON Web Key.

Source: RFC 7515 and 7518; pkg/serviceaccount/jwt.go v1.36.3 for the id of a key.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cached_property
from typing import TYPE_CHECKING

from bayplan.base.extras import named_extras
from bayplan.base.plain_data import Document

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

ALGORITHM = "RS256"
_BITS = 2048
_EXPONENT = 65_537


class SigningKey:
    """An RSA key of 2,048 bits, generated on first use, which takes about 0.1 s.

    Raises:
        MissingExtra: at first use, if cryptography is not installed.
    """

    def sign(self, text: str) -> str:
        """Return the signature of a text, in base64 for URLs."""
        with named_extras():
            from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
            from cryptography.hazmat.primitives.hashes import SHA256
        return encoded(self._private.sign(text.encode(), PKCS1v15(), SHA256()))

    def verifies(self, text: str, signature: str) -> bool:
        """Return whether `signature` is the signature of a text."""
        with named_extras():
            from cryptography.exceptions import InvalidSignature
            from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
            from cryptography.hazmat.primitives.hashes import SHA256
        try:
            data = decoded(signature)
            self._private.public_key().verify(data, text.encode(), PKCS1v15(), SHA256())
        except (InvalidSignature, ValueError):
            return False
        return encoded(data) == signature  # Base64 has other spellings of the same bytes.

    @cached_property
    def id(self) -> str:
        """The id of the key: the digest of the public key in DER."""
        with named_extras():
            from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
        der = self._private.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        return encoded(hashlib.sha256(der).digest())

    @property
    def public(self) -> Document:
        """The public key as a JSON Web Key."""
        modulus = self._private.public_key().public_numbers().n.to_bytes(_BITS // 8)
        exponent = _EXPONENT.to_bytes(3)
        return {
            "use": "sig",
            "kty": "RSA",
            "kid": self.id,
            "alg": ALGORITHM,
            "n": encoded(modulus),
            "e": encoded(exponent),
        }

    @cached_property
    def _private(self) -> RSAPrivateKey:
        with named_extras():
            from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
        return generate_private_key(_EXPONENT, _BITS)


def encoded(data: bytes) -> str:
    """Return bytes in base64 for URLs, without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decoded(text: str) -> bytes:
    """Return the bytes of base64 for URLs without padding.

    Raises:
        ValueError: the text is not base64.
    """
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
