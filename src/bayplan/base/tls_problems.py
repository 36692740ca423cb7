"""Descriptions of TLS errors in Go's words: OpenSSL's errors have numbers that look like those of the operating system."""

from __future__ import annotations

import ssl

UNKNOWN_AUTHORITY = frozenset((2, 18, 19, 20, 21))
EXPIRED = frozenset((9, 10))
WRONG_NAME = frozenset((62, 64))
"""Error numbers of OpenSSL's verification (X509_V_ERR_...)."""


def tls_problem(problem: ssl.SSLError, host: str) -> str:
    """Return why a TLS connection failed."""
    if isinstance(problem, ssl.SSLCertVerificationError):
        return verification_problem(problem, host)
    if problem.reason == "WRONG_VERSION_NUMBER":
        return "http: server gave HTTP response to HTTPS client"
    return f"tls: {(problem.reason or str(problem)).replace('_', ' ').lower()}"


def verification_problem(problem: ssl.SSLCertVerificationError, host: str) -> str:
    """Return what is wrong with a server's certificate, in Go's words if they are known."""
    text = f"x509: {problem.verify_message}"
    if problem.verify_code in UNKNOWN_AUTHORITY:
        text = "x509: certificate signed by unknown authority"
    elif problem.verify_code in EXPIRED:
        text = "x509: certificate has expired or is not yet valid"
    elif problem.verify_code in WRONG_NAME:
        text = f"x509: certificate is not valid for {host}"
    return f"tls: failed to verify certificate: {text}"
