"""Allowed targets of webhook calls, and the endpoint of a call. By default no target is allowed.

Webhook configurations name URLs and services. The server connects to them only if `--webhooks` allows it, regardless of
the user who wrote the configuration.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import ip_address
from typing import NamedTuple
from urllib.parse import urlsplit

from bayplan.base.errors import InputError
from bayplan.base.plain_data import Document, part

LOOPBACK, ANY = "loopback", "any"
_PLACE = re.compile(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+):(\d{1,5})")
_SERVICE = re.compile(r"([a-z0-9-]+)/([a-z0-9-]+)(?::(\d{1,5}))?")
_HTTPS = 443


class Place(NamedTuple):
    """A host and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Endpoint(NamedTuple):
    """The endpoint of a call.

    Attributes:
        place: the host and port to connect to.
        server_name: the host name for which the certificate must be valid.
        authority: the host and port for the Host header and messages.
        path: the path of the request.
    """

    place: Place
    server_name: str
    authority: str
    path: str

    def url(self, timeout_s: int) -> str:
        """Return the URL of the call, in the form used in messages."""
        return f"https://{self.authority}{self.path}?timeout={timeout_s}s"


class Targets:
    """The allowed targets of webhook calls.

    Args:
        allowed: entries of the form ``loopback``, ``any``, ``HOST:PORT``, or ``WHAT=HOST:PORT``. The last one redirects
            calls to WHAT, which is a service (``NAMESPACE/NAME`` or ``NAMESPACE/NAME:PORT``) or a host and port.

    Raises:
        InputError: an entry has an invalid form.
    """

    def __init__(self, allowed: Iterable[str] = ()) -> None:
        self._loopback = self._any = False
        self._places: set[Place] = set()
        self._moved: dict[Place, Place] = {}
        self._services: dict[tuple[str, str, int], Place] = {}
        for entry in allowed:
            self._allow(entry)

    def __bool__(self) -> bool:
        return bool(self._loopback or self._any or self._places or self._moved or self._services)

    def _allow(self, entry: str) -> None:
        what, equals, place = entry.partition("=")
        service = _SERVICE.fullmatch(what)
        if not equals and what == LOOPBACK:
            self._loopback = True
        elif not equals and what == ANY:
            self._any = True
        elif not equals:
            self._places.add(_place(what, entry))
        elif service is not None:
            namespace, name, port = service.groups()
            self._services[(namespace, name, int(port or 0))] = _place(place, entry)
        else:
            self._moved[_place(what, entry)] = _place(place, entry)

    def find(self, client: Document) -> Endpoint | None:
        """Return the endpoint of a ``clientConfig`` (with ``url`` or ``service``), or None if it must not be called."""
        service = part(client, "service")
        if service:
            return self._service(service)
        try:
            url = urlsplit(str(client.get("url") or ""))
            place = Place(url.hostname or "", url.port or _HTTPS)
        except ValueError:
            return None
        moved = self._moved.get(place)
        allowed = self._any or place in self._places or (self._loopback and _is_loopback(place.host))
        if url.scheme != "https" or not place.host or (moved is None and not allowed):
            return None
        return Endpoint(moved or place, place.host, url.netloc.rpartition("@")[2], url.path)

    def _service(self, service: Document) -> Endpoint | None:
        namespace, name = str(service.get("namespace") or ""), str(service.get("name") or "")
        asked = service.get("port")
        port = asked if isinstance(asked, int) and asked else _HTTPS
        place = self._services.get((namespace, name, port)) or self._services.get((namespace, name, 0))
        return None if place is None else service_endpoint(service, place)


def service_endpoint(service: Document, place: Place) -> Endpoint:
    """Return the endpoint for calls to a service at the address `place`."""
    server, path, port = (
        f"{service.get('name')}.{service.get('namespace')}.svc",
        str(service.get("path") or ""),
        service.get("port"),
    )
    return Endpoint(
        place, server, f"{server}:{port or _HTTPS}", path if path.startswith("/") or not path else f"/{path}"
    )


def _place(text: str, entry: str) -> Place:
    match = _PLACE.fullmatch(text)
    if match is None or not 0 < int(match[2]) < 1 << 16:
        raise InputError(
            "--webhooks",
            wanted="loopback, any, HOST:PORT, NAMESPACE/SERVICE=HOST:PORT or HOST:PORT=HOST:PORT",
            got=repr(entry),
            hint="--webhooks loopback",
        )
    return Place(match[1].strip("[]"), int(match[2]))


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"
