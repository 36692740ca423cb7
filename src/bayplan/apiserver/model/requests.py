"""Requests as the verbs receive them: the resource concerned, and the options of lists, writes and deletions."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from bayplan.apiserver.model.resources import Resource


class RequestInfo(msgspec.Struct, frozen=True):
    """The parsed target of a request.

    Attributes:
        verb: ``get``, ``list``, ``watch``, ``create``, ``update``, ``patch``, ``delete``, ``deletecollection``.
        resource: plural name of the resource.
        namespace: empty for cluster-scoped resources and for all namespaces.
        name: empty for collections.
        subresource: empty for the object itself.
    """

    verb: str
    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""


_NO_QUERY: Mapping[str, str] = MappingProxyType({})


class ListOptions(msgspec.Struct, frozen=True):
    """Options of a list or a watch.

    Attributes:
        resource_version: the requested resource version; None if there is none.
        match: the match type of the resource version.
    """

    label_selector: str = ""
    field_selector: str = ""
    resource_version: int | None = None
    match: str = ""
    limit: int = 0
    continue_token: str = ""
    timeout_seconds: int | None = None
    bookmarks: bool = False
    send_initial_events: bool | None = None


class WriteOptions(msgspec.Struct, frozen=True):
    """Options of a create, an update or a patch.

    Attributes:
        dry_run: whether nothing is stored.
        manager: the name of the field manager.
        validation: the validation of unknown and repeated fields: ``Strict``, ``Warn`` or ``Ignore``.
        force: whether an apply takes ownership of conflicting fields.
        user: the user of the request; empty for components of the cluster.
        query: the query of the request, for admission.
    """

    dry_run: bool = False
    manager: str = ""
    validation: str = "Warn"
    force: bool = False
    user: str = ""
    query: Mapping[str, str] = _NO_QUERY


class DeleteOptions(msgspec.Struct):
    """Options of a deletion.

    Attributes:
        grace_seconds: the grace period; None for the object's own.
        uid, resource_version: the preconditions, or empty.
        propagation: ``Foreground``, ``Background``, ``Orphan`` or empty.
        orphan: the deprecated form of the propagation policy.
        dry_run: whether nothing is stored.
        user: the user of the request; empty for components of the cluster.
        warnings: the warnings for the client, after the deletion.
    """

    grace_seconds: int | None = None
    uid: str | None = None
    resource_version: str | None = None
    propagation: str = ""
    orphan: bool | None = None
    dry_run: bool = False
    user: str = ""
    warnings: list[str] = msgspec.field(default_factory=list)
