"""The TLS settings of an extender as an `ssl.SSLContext`, by client-go's rules."""

from __future__ import annotations

import os
import ssl
import tempfile
from pathlib import Path

from bayplan.base.errors import ConfigurationError
from bayplan.framework.configuration.document import Extender, ExtenderTLSConfig


def tls_context(extender: Extender) -> ssl.SSLContext:
    """Return the TLS settings of an extender.

    As upstream, nothing is verified if `enableHTTPS` is set without a certificate authority.

    Raises:
        ConfigurationError: a certificate or key cannot be read.
    """
    tls = extender.tls_config or ExtenderTLSConfig()
    context = ssl.create_default_context()
    try:
        if tls.ca_data or tls.ca_file:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            authority = tls.ca_data or Path(tls.ca_file).read_bytes()
            context.load_verify_locations(cadata=authority.decode("ascii", "replace"))
        elif tls.insecure or extender.enable_https:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        certificate = tls.cert_data or (Path(tls.cert_file).read_bytes() if tls.cert_file else b"")
        key = tls.key_data or (Path(tls.key_file).read_bytes() if tls.key_file else b"")
        if certificate and key:
            _load_pair(context, certificate, key)
    except OSError as problem:
        # An SSLError is an OSError, too, but has no file.
        what = problem.filename or "certificates"
        raise ConfigurationError(
            f"extender {extender.url_prefix} tlsConfig: can't read {what}: {problem.strerror}"
        ) from None
    return context


def _load_pair(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Load a certificate with its key, through a file: OpenSSL reads them only from files."""
    descriptor, path = tempfile.mkstemp(suffix=".pem")
    try:
        with open(descriptor, "wb") as file:
            file.write(certificate + b"\n" + key)
        context.load_cert_chain(path)
    finally:
        os.unlink(path)
