"""The proxy for an API server: from the kubeconfig, else from the environment, as in client-go.

`NO_PROXY` has the rules of Go's ``golang.org/x/net/http/httpproxy``.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from urllib.parse import SplitResult, urlsplit

from bayplan.base.errors import InputError

_PORTS = {"http": 80, "https": 443}
_USER = re.compile(r"^(\w[\w+.-]*://)?.*@", re.DOTALL)

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def proxy_for(url: str, declared: str | None, environment: Mapping[str, str], *, where: str = "") -> str | None:
    """Return the URL of the proxy for a server, or None.

    Args:
        url: the URL of the server.
        declared: the proxy in the kubeconfig; it takes precedence.
        environment: the environment variables, of which ``HTTP_PROXY``, ``HTTPS_PROXY`` and ``NO_PROXY`` are read, in either case.
        where: the kubeconfig, for messages.

    Raises:
        InputError: the URL of the server or of the proxy is invalid, or has a protocol that is not supported.
    """
    parts = _checked(url, "a URL", "server", where)
    if declared:
        _checked(declared, "a proxy", "proxy-url", where)
        return declared
    name = f"{parts.scheme}_proxy"
    proxy = _variable(environment, name)
    port = parts.port or _PORTS[parts.scheme]
    if not proxy or _is_direct(parts.hostname or "", port, _variable(environment, "no_proxy")):
        return None
    proxy = proxy if "://" in proxy else f"http://{proxy}"
    _checked(proxy, "a proxy", name.upper())
    return proxy


def _variable(environment: Mapping[str, str], name: str) -> str:
    return environment.get(name.upper()) or environment.get(name) or ""


def _checked(url: str, noun: str, name: str, where: str = "") -> SplitResult:
    """Return the parts of a URL with a protocol, a host and a valid port. Errors show it without a user and password."""
    # Kubeconfigs may contain numbers.
    text = str(url)
    try:
        parts = urlsplit(text)
        if parts.scheme in _PORTS and parts.hostname and parts.port != 0:
            return parts
    except ValueError:
        pass
    shown = _USER.sub(r"\1", text)
    raise InputError(
        name, where=where, got=f"'{shown}'", wanted=f"{noun} with http:// or https://, a host and a valid port"
    )


def _is_direct(host: str, port: int, exceptions: str) -> bool:
    """Return whether a host is reached without a proxy: loopback, or one that ``NO_PROXY`` names."""
    address = _address(host)
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    return any(_matches(each.strip().lower(), host, address, port) for each in exceptions.split(","))


def _matches(exception: str, host: str, address: _Address | None, port: int) -> bool:
    if exception == "*":
        return True
    if (network := _network(exception)) is not None:
        return address is not None and address in network
    name, wanted_port = _split_port(exception)
    if not name or wanted_port not in ("", str(port)):
        return False
    if (own := _address(name)) is not None:
        return own == address
    name = name[1:] if name.startswith("*.") else name
    return host.endswith(name) if name.startswith(".") else host == name or host.endswith(f".{name}")


def _network(exception: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    """Return the network that an exception names; as in Go, only with the length of its prefix."""
    if not exception.rpartition("/")[2].isdecimal() or "/" not in exception:
        return None
    try:
        return ipaddress.ip_network(exception, strict=False)
    except ValueError:
        return None


def _split_port(exception: str) -> tuple[str, str]:
    """Return the host and the port, "" if there is none. As in Go, IPv6 addresses have brackets only before a port."""
    host, colon, port = exception.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        return host[1:-1], port
    return (host, port) if colon and ":" not in host else (exception, "")


def _address(host: str) -> _Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
