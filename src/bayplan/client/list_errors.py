"""Errors about collections that can't be listed, by the response of the server."""

from __future__ import annotations

from http import HTTPStatus

from bayplan.base.errors import InputError
from bayplan.client.requests import NO_ANSWER, ApiResponse


def list_error(name: str, plural: str, response: ApiResponse) -> InputError:
    """Return the error about a failed list of all objects of a kind.

    Args:
        name: the name of the cluster.
        plural: the plural name of the kind.
        response: the server's response, whose status is no success.
    """
    if response.status == NO_ANSWER:
        return InputError(f"{name} does not respond: {response.message}", hint="kubectl get --raw /readyz")
    if response.status == HTTPStatus.UNAUTHORIZED:
        return InputError(name, got=response.message, wanted="valid credentials", hint="kubectl auth whoami")
    if response.status == HTTPStatus.FORBIDDEN:
        return InputError(
            f"{name} list {plural}",
            got=response.message,
            wanted=f"permission to list {plural} in all namespaces",
            hint=f"kubectl auth can-i list {plural} --all-namespaces",
        )
    return InputError(f"{plural} of {name} can't be listed: {response.message}", hint="kubectl get --raw /readyz")
