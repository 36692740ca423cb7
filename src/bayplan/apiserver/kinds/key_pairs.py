"""The warning about a Secret of type `kubernetes.io/tls` whose certificate or key cannot be read.

Upstream also reads the certificate itself and compares it with the key. Here, only its outermost structure is checked.

Source: warningsForSecret (pkg/registry/core/secret) and X509KeyPair (crypto/tls), v1.36.3 with Go 1.26; recorded messages.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator

from bayplan.base.plain_data import Document, part

_TYPE = "kubernetes.io/tls"
_BEGIN, _DASHES = b"-----BEGIN ", b"-----"
_END = re.compile(rb"\n-----END ([^\n]*)")
_CERTIFICATE, _KEY = "CERTIFICATE", "PRIVATE KEY"
_SEQUENCE = 0x30


def key_pair_warnings(secret: Document) -> Iterator[str]:
    """Yield the warning about the key pair of a Secret, if it has that type and the pair is unusable."""
    if secret.get("type") == _TYPE:
        data = part(secret, "data")
        problem = _problem(_decoded(data.get("tls.crt")), _decoded(data.get("tls.key")))
        if problem:
            yield problem


def _decoded(value: object) -> bytes:
    return base64.b64decode(str(value or ""))


def _blocks(text: bytes) -> list[tuple[str, bytes]]:
    """Return the type and content of each PEM block of a text. Blocks that cannot be decoded are skipped.

    Like Go, look for the last beginning before each end, which takes time linear in the length of the text.
    """
    found, start = [], 0
    for end in _END.finditer(text):
        begin = text.rfind(_BEGIN, start, end.start())
        if begin == start or (begin > start and text[begin - 1 : begin] == b"\n"):
            block = _block(text[begin + len(_BEGIN) : end.start() + 1], end[1])
            if block is not None:
                found.append(block)
        start = end.start(1)
    return found


def _block(text: bytes, end: bytes) -> tuple[str, bytes] | None:
    """Return the type and content of a PEM block, given the texts after BEGIN and after END; None if it is invalid."""
    first, *lines = text.split(b"\n")
    title = _stripped(first)
    if not title.endswith(_DASHES) or _stripped(end) != title:
        return None
    headers = next((number for number, line in enumerate(lines) if b":" not in line), 0)
    if headers and headers == len(lines) - 1:
        return None  # An empty line must follow headers.
    try:
        content = base64.b64decode(b"".join(lines[headers:]).translate(None, b" \t\r"), validate=True)
    except binascii.Error:
        return None
    return title.removesuffix(_DASHES).decode(errors="replace"), content


def _stripped(line: bytes) -> bytes:
    return line.removesuffix(b"\r").rstrip(b" \t")


def _problem(certificate: bytes, key: bytes) -> str:
    blocks = _blocks(certificate)
    certificates = [content for kind, content in blocks if kind == _CERTIFICATE]
    if not certificates:
        return _no_certificate([kind for kind, _ in blocks])
    skipped = []
    for kind, _ in _blocks(key):
        if kind == _KEY or kind.endswith(f" {_KEY}"):
            return "" if _is_sequence(certificates[0]) else "x509: malformed certificate"
        skipped.append(kind)
    return _no_key(skipped)


def _no_certificate(skipped: list[str]) -> str:
    if not skipped:
        return "tls: failed to find any PEM data in certificate input"
    if len(skipped) == 1 and skipped[0].endswith(_KEY):
        text = "tls: failed to find certificate PEM data in certificate input, but did find a private key; "
        return f"{text}PEM inputs may have been switched"
    text = f'tls: failed to find "{_CERTIFICATE}" PEM block in certificate input after skipping PEM blocks of the following '
    return f"{text}types: [{' '.join(skipped)}]"


def _no_key(skipped: list[str]) -> str:
    if not skipped:
        return "tls: failed to find any PEM data in key input"
    if skipped == [_CERTIFICATE]:
        return "tls: found a certificate rather than a key in the PEM for the private key"
    text = f'tls: failed to find PEM block with type ending in "{_KEY}" in key input after skipping PEM blocks of the following '
    return f"{text}types: [{' '.join(skipped)}]"


def _is_sequence(der: bytes) -> bool:
    """Return whether DER is one sequence of the length that it declares."""
    if len(der) < 2 or der[0] != _SEQUENCE:
        return False
    if der[1] < 0x80:
        return len(der) == 2 + der[1]
    count = der[1] & 0x7F
    return len(der) == 2 + count + int.from_bytes(der[2 : 2 + count], "big")
