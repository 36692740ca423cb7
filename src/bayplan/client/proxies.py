"""The proxy for an API server: from the kubeconfig, else from the environment, as in client-go."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit

from bayplan.base.errors import InputError

_SCHEMES = ("http", "https")


def proxy_for(url: str, declared: str | None, environment: Mapping[str, str]) -> str | None:
    """Return the URL of the proxy for a server, or None.

    Args:
        url: the URL of the server.
        declared: the proxy in the kubeconfig; it takes precedence.
        environment: the environment variables, of which ``HTTP_PROXY``, ``HTTPS_PROXY`` and ``NO_PROXY`` are read, in either case.

    Raises:
        InputError: the proxy's protocol is not supported.
    """
    parts = urlsplit(url)
    if declared:
        return _supported(declared, "proxy-url")
    name = f"{parts.scheme}_proxy"
    proxy = _variable(environment, name)
    if not proxy or _is_direct(parts.hostname or "", parts.port, _variable(environment, "no_proxy")):
        return None
    return _supported(proxy if "://" in proxy else f"http://{proxy}", name.upper())


def _variable(environment: Mapping[str, str], name: str) -> str:
    return environment.get(name.upper()) or environment.get(name) or ""


def _supported(proxy: str, name: str) -> str:
    if urlsplit(proxy).scheme not in _SCHEMES:
        raise InputError(name, got=f"'{proxy}'", wanted="a proxy with http:// or https://")
    return proxy


def _is_direct(host: str, port: int | None, exceptions: str) -> bool:
    """Return whether a host is reached without a proxy: loopback, or one that ``NO_PROXY`` names."""
    address = _address(host)
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    return any(_matches(each.strip().lower(), host, address, port) for each in exceptions.split(","))


def _matches(
    exception: str, host: str, address: ipaddress.IPv4Address | ipaddress.IPv6Address | None, port: int | None
) -> bool:
    if exception == "*":
        return True
    if address is not None and "/" in exception:
        try:
            return address in ipaddress.ip_network(exception, strict=False)
        except ValueError:
            return False
    name, _, wanted_port = exception.rpartition(":") if exception.count(":") == 1 else (exception, "", "")
    if not name or (wanted_port and wanted_port != str(port)):
        return False
    if address is not None:
        return _address(name.strip("[]")) == address
    name = name.removeprefix("*")
    return host.endswith(name) if name.startswith(".") else host == name or host.endswith(f".{name}")


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
