"""Checks the certificates of an extender like kube-scheduler when it starts: reads the files and finds the PEM blocks.

Certificates that OpenSSL accepts are accepted, although Go parses some more strictly.
"""

import base64
import binascii
import re
from pathlib import Path

from bayplan.framework.configuration.document import ExtenderTLSConfig

_PEM_BLOCK = re.compile(rb"-----BEGIN ([A-Z0-9 ]+)-----\s*\n(.*?)\n?-----END \1-----", re.DOTALL)


def check_extender_tls(tls: ExtenderTLSConfig) -> str | None:
    """Return what is wrong with an extender's certificates, in client-go's words; None if nothing is."""
    has_ca = bool(tls.ca_file or tls.ca_data)
    has_pair = bool((tls.cert_file or tls.cert_data) and (tls.key_file or tls.key_data))
    if not (has_ca or has_pair or tls.insecure or tls.server_name):
        return None
    # If certificate and key are both given as files only, client-go loads them at every handshake, not when it starts.
    reloads = bool(tls.cert_file and tls.key_file) and not tls.cert_data and not tls.key_data
    try:
        ca_data = tls.ca_data or _read(tls.ca_file)
        cert_data = tls.cert_data or _read(tls.cert_file)
        key_data = tls.key_data or _read(tls.key_file)
    except OSError as error:
        return f"open {error.filename}: {(error.strerror or '').lower()}"
    if has_ca and ca_data and (problem := _ca_problem(ca_data)):
        return f"unable to load root certificates: {problem}"
    if has_pair and not reloads:
        return _pair_problem(cert_data, key_data)
    return None


def _read(path: str) -> bytes:
    return Path(path).read_bytes() if path else b""


def _blocks(pem: bytes) -> list[tuple[bytes, bytes]]:
    """Return type and content of the PEM blocks."""
    found = []
    for match in _PEM_BLOCK.finditer(pem):
        try:
            found.append((match[1], base64.b64decode(match[2], validate=False)))
        except binascii.Error:
            continue
    return found


def _is_certificate(der: bytes) -> bool:
    import ssl  # Few runs have extenders, and fewer of those have certificates to check.

    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=der)
    except (ssl.SSLError, ValueError):
        return False
    return True


def _ca_problem(pem: bytes) -> str | None:
    blocks = _blocks(pem)
    certificates = [der for kind, der in blocks if kind == b"CERTIFICATE"]
    if any(_is_certificate(der) for der in certificates):
        return None
    if certificates:
        return "failed to parse certificate: x509: malformed certificate"
    return "no valid certificate authority data seen" if blocks else "unable to parse bytes as PEM block"


def _pair_problem(cert_data: bytes, key_data: bytes) -> str | None:
    certificates = [kind for kind, _ in _blocks(cert_data)]
    if not certificates:
        return "tls: failed to find any PEM data in certificate input"
    if b"CERTIFICATE" not in certificates:
        if len(certificates) == 1 and certificates[0].endswith(b"PRIVATE KEY"):
            return (
                "tls: failed to find certificate PEM data in certificate input, but did find a private key; "
                "PEM inputs may have been switched"
            )
        return (
            'tls: failed to find "CERTIFICATE" PEM block in certificate input after skipping PEM blocks of the '
            f"following types: [{b' '.join(certificates).decode()}]"
        )
    keys = [kind for kind, _ in _blocks(key_data)]
    if not keys:
        return "tls: failed to find any PEM data in key input"
    if not any(kind == b"PRIVATE KEY" or kind.endswith(b" PRIVATE KEY") for kind in keys):
        if keys == [b"CERTIFICATE"]:
            return "tls: found a certificate rather than a key in the PEM for the private key"
        return (
            'tls: failed to find PEM block with type ending in "PRIVATE KEY" in key input after skipping PEM blocks of the '
            f"following types: [{b' '.join(keys).decode()}]"
        )
    return None
