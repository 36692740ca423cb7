"""Certificates of extenders: files, PEM blocks, pairs, and client-go's error messages."""

import base64
from pathlib import Path

import pytest

from bayplan.extender.tls_check import check_extender_tls
from bayplan.framework.configuration.document import ExtenderTLSConfig


def pem(kind: str, data: bytes = b"abc") -> bytes:
    return f"-----BEGIN {kind}-----\n{base64.b64encode(data).decode()}\n-----END {kind}-----\n".encode()


@pytest.mark.parametrize(
    ("tls", "want"),
    [
        (ExtenderTLSConfig(), None),
        (ExtenderTLSConfig(insecure=True), None),
        (ExtenderTLSConfig(cert_file="/nowhere/c"), None),
        (ExtenderTLSConfig(ca_file="/nowhere/ca"), "open /nowhere/ca: no such file or directory"),
        (ExtenderTLSConfig(server_name="s", cert_file="/nowhere/c"), "open /nowhere/c: no such file or directory"),
        (ExtenderTLSConfig(ca_data=b"abc"), "unable to load root certificates: unable to parse bytes as PEM block"),
        (
            ExtenderTLSConfig(ca_data=pem("PRIVATE KEY")),
            "unable to load root certificates: no valid certificate authority data seen",
        ),
        (
            ExtenderTLSConfig(ca_data=pem("CERTIFICATE")),
            "unable to load root certificates: failed to parse certificate: x509: malformed certificate",
        ),
        (
            ExtenderTLSConfig(cert_data=b"abc", key_data=b"abc"),
            "tls: failed to find any PEM data in certificate input",
        ),
        (
            ExtenderTLSConfig(cert_data=pem("PRIVATE KEY"), key_data=b"abc"),
            "tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs may have "
            "been switched",
        ),
        (
            ExtenderTLSConfig(cert_data=pem("A") + pem("B"), key_data=b"abc"),
            'tls: failed to find "CERTIFICATE" PEM block in certificate input after skipping PEM blocks of the following '
            "types: [A B]",
        ),
        (
            ExtenderTLSConfig(cert_data=pem("CERTIFICATE"), key_data=pem("CERTIFICATE")),
            "tls: found a certificate rather than a key in the PEM for the private key",
        ),
        (
            ExtenderTLSConfig(cert_data=pem("CERTIFICATE"), key_data=b"abc"),
            "tls: failed to find any PEM data in key input",
        ),
        (
            ExtenderTLSConfig(cert_data=pem("CERTIFICATE"), key_data=pem("A") + pem("B")),
            'tls: failed to find PEM block with type ending in "PRIVATE KEY" in key input after skipping PEM blocks of the '
            "following types: [A B]",
        ),
    ],
    ids=[
        "nothing",
        "unverified",
        "a certificate without a key is not used",
        "a missing root",
        "a missing certificate",
        "a root that is not PEM",
        "a root that is a key",
        "a root with invalid content",
        "a certificate that is not PEM",
        "a certificate that is a key",
        "a certificate of another kind",
        "a key that is a certificate",
        "a key that is not PEM",
        "a key of another kind",
    ],
)
def test_tls_problems_are_reported_with_the_messages_of_client_go(tls: ExtenderTLSConfig, want: str | None) -> None:
    assert check_extender_tls(tls) == want


def test_an_empty_ca_file_is_accepted(tmp_path: Path) -> None:
    empty = tmp_path / "ca.pem"
    empty.write_bytes(b"")
    assert check_extender_tls(ExtenderTLSConfig(ca_file=str(empty))) is None


def test_certificate_and_key_files_are_read_but_not_parsed(tmp_path: Path) -> None:
    for name in ("c", "k"):
        (tmp_path / name).write_bytes(b"abc")
    assert check_extender_tls(ExtenderTLSConfig(cert_file=str(tmp_path / "c"), key_file=str(tmp_path / "k"))) is None
