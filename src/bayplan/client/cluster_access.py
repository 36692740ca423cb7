"""The address and credentials of a cluster, from a kubeconfig or from the environment of a pod.

The official Kubernetes client for Python supports all features of a kubeconfig: certificates, tokens, exec plugins, OIDC.
`bayplan.client.kubeconfig_files` reads and merges the files.
"""

from __future__ import annotations

import ast
import asyncio
import logging
import os
import re
import ssl
import time
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from bayplan.base.errors import InputError
from bayplan.base.near_names import near_name
from bayplan.base.plain_data import Document
from bayplan.client.kubeconfig_files import read_kubeconfig
from bayplan.client.proxies import proxy_for

if TYPE_CHECKING:
    from kubernetes.aio.client import Configuration

REFRESH_SECONDS = 10.0
"""Minimum interval between refreshes of credentials that the server rejected."""

_IN_CLUSTER = "KUBERNETES_SERVICE_HOST"
_log = logging.getLogger("bayplan.client")

_errors: ContextVar[list[str] | None] = ContextVar("errors", default=None)
"""The errors that the library logged while the current task loads credentials; None if it loads none."""


_PLUGIN_FAILED = re.compile(r"""(exec: process returned -?\d+\. )(b'(?:[^'\\]|\\.)*'|b"(?:[^"\\]|\\.)*")""")
"""The library's message about an exec plugin that failed; its error output is the representation of a bytes object."""


def _collect(record: logging.LogRecord) -> bool:
    """Collect an error that the library logs, because it reports failures of exec plugins only in the log.

    Return whether to log the record: only if the current task loads no credentials.
    """
    _show_as_text(record)
    errors = _errors.get()
    if errors is not None and record.levelno >= logging.ERROR:
        errors.append(record.getMessage())
    return errors is None


def _show_as_text(record: logging.LogRecord) -> None:
    """Replace the error output in the message about an exec plugin that failed by its text, in one line."""
    failed = _PLUGIN_FAILED.fullmatch(record.getMessage())
    if failed is not None:
        output: bytes = ast.literal_eval(failed[2])
        record.msg, record.args = failed[1] + " ".join(output.decode(errors="replace").split()), None


# A filter, not a handler, which would have to change the logger's settings while other tasks load their credentials.
logging.getLogger("kubernetes.aio.config.kube_config").addFilter(_collect)


class ClusterAccess:
    """The address and credentials of a cluster; created by `open_access`.

    Attributes:
        url: the URL of the API server, without a trailing slash.
        tls: the TLS context for HTTPS; None for plain HTTP.
        server_name: the name expected in the certificate; None for the host name in the URL.
        proxy: the URL of a proxy; None for no proxy.
        context: the name of the kubeconfig's context; "" in a pod of the cluster.
    """

    def __init__(self, kubeconfig: str | None, context: str | None) -> None:
        self.url = ""
        self.tls: ssl.SSLContext | None = None
        self.server_name: str | None = None
        self.proxy: str | None = None
        self.context = ""
        self._kubeconfig = kubeconfig
        self._context = context
        self._configuration: Configuration | None = None
        self._loaded_at = self._tried_at = 0.0
        self._loading = asyncio.Lock()

    async def load(self) -> None:
        """Read the address and the credentials.

        Raises:
            InputError: the kubeconfig or the pod's credentials cannot be read, or are invalid.
        """
        from aiohttp import ClientError
        from kubernetes.aio.client import Configuration
        from kubernetes.aio.config import kube_config
        from kubernetes.aio.config.config_exception import ConfigException
        from kubernetes.aio.config.incluster_config import load_incluster_config

        configuration = Configuration()
        errors: list[str] = []
        collecting = _errors.set(errors)
        try:
            if self._kubeconfig is None:
                load_incluster_config(configuration)  # type: ignore[no-untyped-call]
            else:
                _check_readable(self._kubeconfig)
                document = read_kubeconfig(self._kubeconfig)
                self._check_context(document)
                loader = await kube_config.load_kube_config_from_dict(  # type: ignore[no-untyped-call]
                    document, self._context, configuration
                )
                self.context = str(loader.current_context["name"])
        except (
            ConfigException,
            ClientError,
            ValueError,
            TypeError,
            KeyError,
            AttributeError,
            OSError,
            yaml.YAMLError,
        ) as problem:
            raise InputError(
                "kubeconfig",
                where=self._where,
                got=_short(problem),
                wanted="a context with a cluster and a user",
                hint="kubectl config view",
            ) from None
        finally:
            _errors.reset(collecting)
        if errors:
            raise InputError("credentials", where=self._where, got="; ".join(errors), wanted="a token or a certificate")
        self._take(configuration)

    def _check_context(self, document: Document) -> None:
        """Raise InputError if a kubeconfig does not contain the context or its user."""
        contexts, users = _by_name(document, "contexts"), _by_name(document, "users")
        if self._context and self._context not in contexts:
            close = near_name(self._context, contexts)
            raise InputError(
                "--context",
                where=self._where,
                got=f"'{self._context}'",
                wanted=f"one of {', '.join(contexts)}" if contexts else "a kubeconfig with contexts",
                hint=f"'{close}'" if close else "",
            )
        context = contexts.get(self._context or str(document.get("current-context", "")), {}).get("context")
        user = context.get("user") if isinstance(context, dict) else None
        if isinstance(user, str) and user not in users:
            raise InputError("kubeconfig", where=self._where, got=f"the user '{user}'", wanted="a user that exists")

    def _take(self, configuration: Configuration) -> None:
        self._configuration = configuration
        self._loaded_at = self._tried_at = time.monotonic()
        self.url = configuration.host.rstrip("/")
        self.server_name = configuration.tls_server_name
        self.proxy = proxy_for(self.url, configuration.proxy, os.environ, where=self._where)
        if not self.url.startswith("https://"):
            self.tls = None
            return
        try:
            tls = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
            if configuration.cert_file:
                tls.load_cert_chain(configuration.cert_file, configuration.key_file)
        except (OSError, ssl.SSLError) as problem:
            raise InputError("certificates", where=self._where, got=_short(problem), wanted="PEM files") from None
        # CA certificates of clusters often lack the extensions that strict checks require.
        tls.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if not configuration.verify_ssl:
            tls.check_hostname = False
            tls.verify_mode = ssl.CERT_NONE
        self.tls = tls

    @property
    def _where(self) -> str:
        return self._kubeconfig if self._kubeconfig is not None else "this pod"

    async def authorization(self) -> str | None:
        """Return the Authorization header, or None if the credentials are a certificate, or there are none."""
        from kubernetes.aio.config.config_exception import ConfigException

        configuration = self._configuration
        if configuration is None:
            return None
        try:
            token: str | None = await configuration.get_api_key_with_prefix("BearerToken")
        except (ConfigException, OSError, ValueError) as problem:
            # In a pod, the token is read from its file every minute. Like client-go, continue with the previous one.
            _log.warning("the token can't be read: %s", _short(problem))
            token = configuration.api_key.get("BearerToken")
        if token:
            # Files with tokens often end in a line feed, which is invalid in a header.
            return token.strip()
        return configuration.get_basic_auth_token() if configuration.username else None

    async def refresh(self, used_at: float) -> bool:
        """Load the credentials again after the server rejected them; return whether they are newer now.

        They are loaded at most every `REFRESH_SECONDS`.

        Args:
            used_at: the time (`time.monotonic`) of the rejected request.
        """
        async with self._loading:
            if self._loaded_at > used_at:
                return True
            if time.monotonic() - self._tried_at < REFRESH_SECONDS:
                return False
            self._tried_at = time.monotonic()
            try:
                await self.load()
            except InputError as problem:
                _log.warning("credentials can't be renewed: %s", problem)
                return False
            return True


async def open_access(
    kubeconfig: Path | None = None, context: str | None = None, *, option: str = "--kubeconfig"
) -> ClusterAccess:
    """Return the address and credentials of a cluster.

    Args:
        kubeconfig: the file; None for ``KUBECONFIG``, then ``~/.kube/config``, then a pod's service account.
        context: the context in the kubeconfig; None for the current context.
        option: the command-line option that names the kubeconfig, for messages.

    Raises:
        InputError: there is no kubeconfig, or it cannot be used.
    """
    access = ClusterAccess(_kubeconfig_paths(kubeconfig, option), context)
    await access.load()
    return access


def _kubeconfig_paths(kubeconfig: Path | None, option: str) -> str | None:
    if kubeconfig is not None:
        return str(kubeconfig)
    named = os.environ.get("KUBECONFIG", "")
    if named:
        return named
    usual = Path.home() / ".kube" / "config"
    if usual.exists():
        return str(usual)
    if os.environ.get(_IN_CLUSTER):
        return None
    raise InputError(
        "kubeconfig",
        got="none",
        wanted=f"{option} FILE, $KUBECONFIG or ~/.kube/config, or to run in a pod of the cluster",
    )


def _by_name(document: Document, name: str) -> dict[str, Document]:
    """Return the contexts, clusters or users of a kubeconfig by name."""
    entries = document[name]
    assert isinstance(entries, list)
    return {str(entry["name"]): entry for entry in entries}


def _check_readable(paths: str) -> None:
    """Raise InputError if none of the files exists, because the library would ignore that."""
    found = [path for path in paths.split(os.pathsep) if path and Path(path).expanduser().is_file()]
    if not found:
        raise InputError(f"{paths}: no such kubeconfig")


def _short(problem: Exception) -> str:
    text = getattr(problem, "strerror", None) or str(problem) or type(problem).__name__
    return " ".join(str(text).split())
