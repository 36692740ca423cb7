"""Discovery of the served kinds and versions: older clusters lack some kinds, or serve only their beta versions."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from bayplan.base.errors import InputError, ServerUnavailable
from bayplan.client.connection import ApiConnection
from bayplan.client.requests import NO_ANSWER, ApiRequest
from bayplan.objects.kinds import kind_of
from bayplan.objects.meta import KubernetesObject

_NOT_FOUND = 404
_TOO_MANY_REQUESTS = 429
_SERVER_ERRORS = 500


class _Resource(msgspec.Struct):
    name: str = ""


class _ResourceList(msgspec.Struct):
    resources: list[_Resource] = []


async def served_paths(
    connection: ApiConnection, kinds: Iterable[type[KubernetesObject]]
) -> dict[type[KubernetesObject], str]:
    """Return the path of the collection of each kind that the server has, in the newest served version.

    Raises:
        ServerUnavailable: the server does not respond, or is not ready.
        InputError: the server denies access.
    """
    known: dict[str, frozenset[str]] = {}
    found: dict[type[KubernetesObject], str] = {}
    for struct in kinds:
        kind = kind_of(struct)
        for api_version in kind.api_versions:
            prefix = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
            if prefix not in known:
                known[prefix] = await _resources(connection, prefix)
            if kind.plural in known[prefix]:
                found[struct] = f"{prefix}/{kind.plural}"
                break
    return found


async def _resources(connection: ApiConnection, prefix: str) -> frozenset[str]:
    response = await connection.send(ApiRequest("GET", prefix))
    if response.status == _NOT_FOUND:
        return frozenset()
    if not response.ok:
        url = connection.access.url
        if response.status == NO_ANSWER:
            raise ServerUnavailable(
                f"API server {url} does not respond: {response.message}", hint="kubectl cluster-info"
            )
        if response.status >= _SERVER_ERRORS or response.status == _TOO_MANY_REQUESTS:
            raise ServerUnavailable(
                f"API server {url} is not ready: {response.message}", hint="kubectl get --raw /readyz"
            )
        raise InputError(f"API server {url} refuses access: {response.message}", hint="kubectl auth whoami")
    return frozenset(item.name for item in msgspec.json.decode(response.body, type=_ResourceList).resources)
