"""The warnings about the key pair of a TLS Secret."""

import base64

import pytest

from bayplan.apiserver.kinds.key_pairs import key_pair_warnings
from bayplan.base.plain_data import Document


def _pem(kind: str, content: str = "MAA=") -> str:
    return f"-----BEGIN {kind}-----\n{content}\n-----END {kind}-----\n"


_SKIPPED = "after skipping PEM blocks of the following types: "


@pytest.mark.parametrize(
    ("certificate", "key", "want"),
    [
        pytest.param("x", "y", ["tls: failed to find any PEM data in certificate input"], id="no PEM"),
        pytest.param(
            _pem("CERTIFICATE"), "y", ["tls: failed to find any PEM data in key input"], id="a key that is not PEM"
        ),
        pytest.param(
            _pem("CERTIFICATE", "!!"), "y", ["tls: failed to find any PEM data in certificate input"], id="no base64"
        ),
        pytest.param(
            _pem("PRIVATE KEY"),
            "y",
            [
                "tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs may "
                "have been switched"
            ],
            id="a key instead of the certificate",
        ),
        pytest.param(
            _pem("FOO") + _pem("BAR"),
            "y",
            [f'tls: failed to find "CERTIFICATE" PEM block in certificate input {_SKIPPED}[FOO BAR]'],
            id="blocks of other types",
        ),
        pytest.param(
            _pem("CERTIFICATE"),
            _pem("CERTIFICATE"),
            ["tls: found a certificate rather than a key in the PEM for the private key"],
            id="a certificate instead of the key",
        ),
        pytest.param(
            _pem("CERTIFICATE"),
            _pem("EC PARAMETERS") + _pem("FOO"),
            [
                f'tls: failed to find PEM block with type ending in "PRIVATE KEY" in key input {_SKIPPED}[EC PARAMETERS FOO]'
            ],
            id="no key",
        ),
        pytest.param(
            _pem("CERTIFICATE", "AAAA"), _pem("RSA PRIVATE KEY"), ["x509: malformed certificate"], id="no DER"
        ),
        pytest.param(_pem("CERTIFICATE"), _pem("EC PARAMETERS") + _pem("EC PRIVATE KEY"), [], id="a pair"),
        pytest.param(
            "x\n" + _pem("CERTIFICATE", "Proc-Type: 4\nA: b\n\nMA\r\n A=").replace("\n", " \t\r\n"),
            _pem("PRIVATE KEY"),
            [],
            id="headers, spaces and other line breaks",
        ),
        pytest.param("-----BEGIN A-----\n" + _pem("CERTIFICATE"), _pem("PRIVATE KEY"), [], id="a block without an end"),
        pytest.param(
            _pem("CERTIFICATE").replace("END CERTIFICATE", "END X"),
            _pem("PRIVATE KEY"),
            ["tls: failed to find any PEM data in certificate input"],
            id="an end of another type",
        ),
        pytest.param(
            _pem("CERTIFICATE"),
            "-----BEGIN PRIVATE KEY-----\nA: b\n-----END PRIVATE KEY-----\n",
            ["tls: failed to find any PEM data in key input"],
            id="headers alone",
        ),
        pytest.param(
            "-----BEGIN A-----\n" * 50_000,
            "-----BEGIN A-----\n" + "a:\n" * 200_000,
            ["tls: failed to find any PEM data in certificate input"],
            id="a megabyte of beginnings",
        ),
        pytest.param(
            _pem("CERTIFICATE"),
            _pem("PRIVATE KEY", "a:\n" * 200_000),
            [],
            id="a megabyte of headers",
        ),
    ],
)
def test_an_unusable_pair_causes_a_warning(certificate: str, key: str, want: list[str]) -> None:
    data = {"tls.crt": base64.b64encode(certificate.encode()), "tls.key": base64.b64encode(key.encode())}
    secret: Document = {"type": "kubernetes.io/tls", "data": {name: value.decode() for name, value in data.items()}}

    assert list(key_pair_warnings(secret)) == want


def test_other_secrets_are_not_read() -> None:
    assert not list(key_pair_warnings({"type": "Opaque", "data": {"tls.crt": "eA=="}}))
