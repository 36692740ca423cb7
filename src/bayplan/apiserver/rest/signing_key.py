"""The RSA key that signs service account tokens (RS256), and its public half as a JSON Web Key.

Source: RFC 8017 (RSASSA-PKCS1-v1_5), RFC 7518; pkg/serviceaccount/jwt.go v1.36.3 for the id of a key.
"""

from __future__ import annotations

import base64
import hashlib
import threading
from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

from bayplan.base.plain_data import Document

ALGORITHM = "RS256"
_BITS = 2048
_EXPONENT = 65_537
_ROUNDS = 8
"""Rounds of the Miller-Rabin test: for random numbers of 1,024 bits, the chance of a composite is below 2**-100."""
_SIEVE = 2_000
_SHA256_PREFIX = bytes.fromhex("3031300d060960864801650304020105000420")
"""The DER encoding of a SHA-256 digest, up to the digest."""
_RSA_OBJECT = bytes.fromhex("300d06092a864886f70d0101010500")
"""The DER encoding of the algorithm rsaEncryption."""


class _Primes(NamedTuple):
    p: int
    q: int


class SigningKey:
    """An RSA key of 2,048 bits.

    Generating it takes 0.5 to 3 seconds. `bayplan up` does so in a thread, because requests are answered on the event
    loop; without `make_in_background`, the first use generates it. A use waits for a thread that is generating the key.

    Args:
        entropy: returns the given number of random bytes; called by the thread, too.
    """

    def __init__(self, entropy: Callable[[int], bytes]) -> None:
        self._entropy = entropy
        self._lock = threading.Lock()
        self._made: _Primes | None = None

    def make_in_background(self) -> threading.Thread:
        """Start a thread that generates the key, and return it. The thread does not delay the end of the process."""
        thread = threading.Thread(target=self._primes, name="signing-key", daemon=True)
        thread.start()
        return thread

    def sign(self, text: str) -> str:
        """Return the signature of a text, in base64 for URLs."""
        p, q = self._primes()
        number, private = int.from_bytes(_padded(text)), self._private
        # The Chinese remainder theorem: two powers of half the length take a quarter of the time.
        at_p, at_q = pow(number, private % (p - 1), p), pow(number, private % (q - 1), q)
        signature = at_q + (at_p - at_q) * pow(q, -1, p) % p * q
        return encoded(signature.to_bytes(_BITS // 8))

    def verifies(self, text: str, signature: str) -> bool:
        """Return whether `signature` is the signature of a text."""
        try:
            data = decoded(signature)
        except ValueError:
            return False
        number = int.from_bytes(data)
        if encoded(data) != signature or len(data) != _BITS // 8 or number >= self._modulus:
            return False
        return pow(number, _EXPONENT, self._modulus) == int.from_bytes(_padded(text))

    @property
    def id(self) -> str:
        """The id of the key: the digest of the public key in DER."""
        return encoded(hashlib.sha256(self._der()).digest())

    @property
    def public(self) -> Document:
        """The public key as a JSON Web Key."""
        modulus = encoded(self._modulus.to_bytes(_BITS // 8))
        exponent = encoded(_EXPONENT.to_bytes(3))
        return {"use": "sig", "kty": "RSA", "kid": self.id, "alg": ALGORITHM, "n": modulus, "e": exponent}

    def _primes(self) -> _Primes:
        """Return the primes of the key. The first call generates them, and concurrent calls wait for it."""
        with self._lock:
            while self._made is None:
                found = _Primes(self._prime(), self._prime())
                self._made = found if found.p != found.q else None
            return self._made

    @property
    def _modulus(self) -> int:
        p, q = self._primes()
        return p * q

    @cached_property
    def _private(self) -> int:
        p, q = self._primes()
        return pow(_EXPONENT, -1, (p - 1) * (q - 1))

    def _prime(self) -> int:
        """Return a random prime of half the bits of the key, with its two highest bits set."""
        bits = _BITS // 2
        while True:
            start = int.from_bytes(self._entropy(bits // 8)) | 3 << bits - 2 | 1
            for candidate in range(start, min(start + 2 * bits, 1 << bits), 2):
                if all(candidate % each for each in _SMALL_PRIMES) and self._is_prime(candidate):
                    return candidate

    def _is_prime(self, candidate: int) -> bool:
        """Return whether a number is prime, by the Miller-Rabin test; also that it suits the public exponent."""
        if (candidate - 1) % _EXPONENT == 0:
            return False
        twos = ((candidate - 1) & -(candidate - 1)).bit_length() - 1
        for _ in range(_ROUNDS):
            base = int.from_bytes(self._entropy(_BITS // 16 - 1)) + 2
            power = pow(base, (candidate - 1) >> twos, candidate)
            if power in (1, candidate - 1):
                continue
            for _ in range(twos - 1):
                power = power * power % candidate
                if power == candidate - 1:
                    break
            else:
                return False
        return True

    def _der(self) -> bytes:
        numbers = _der_item(0x02, _positive(self._modulus)) + _der_item(0x02, _positive(_EXPONENT))
        key = _der_item(0x30, numbers)
        return _der_item(0x30, _RSA_OBJECT + _der_item(0x03, b"\0" + key))


_SMALL_PRIMES = [each for each in range(3, _SIEVE, 2) if all(each % other for other in range(3, int(each**0.5) + 1, 2))]


def encoded(data: bytes) -> str:
    """Return bytes in base64 for URLs, without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decoded(text: str) -> bytes:
    """Return the bytes of base64 for URLs without padding.

    Raises:
        ValueError: the text is not base64.
    """
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _padded(text: str) -> bytes:
    """Return the digest of a text, padded to the length of the key."""
    digest = _SHA256_PREFIX + hashlib.sha256(text.encode()).digest()
    return b"\0\1" + b"\xff" * (_BITS // 8 - len(digest) - 3) + b"\0" + digest


def _positive(number: int) -> bytes:
    return number.to_bytes(number.bit_length() // 8 + 1)


def _der_item(tag: int, content: bytes) -> bytes:
    size = len(content)
    if size < 0x80:
        return bytes((tag, size)) + content
    length = size.to_bytes((size.bit_length() + 7) // 8)
    return bytes((tag, 0x80 | len(length))) + length + content
