"""Parsed requests: the target resource and object, and the options of lists, writes and deletions."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from bayplan.apiserver.model.resources import Resource
from bayplan.apiserver.model.users import User

APPROVAL = "approval"
"""The subresource that sets the approval conditions of a CertificateSigningRequest, with its own validation rules."""


class RequestInfo(msgspec.Struct, frozen=True):
    """The parsed target of a request.

    Attributes:
        verb: ``get``, ``list``, ``watch``, ``create``, ``update``, ``patch``, ``delete`` or ``deletecollection``.
        resource: the resource in the API version of the request.
        namespace: the namespace; empty for cluster-scoped resources and for all namespaces.
        name: the name of the object; empty for collections.
        subresource: the subresource; empty for the object itself.
    """

    verb: str
    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""


_NO_QUERY: Mapping[str, str] = MappingProxyType({})


class ListOptions(msgspec.Struct, frozen=True):
    """Options of a list or watch.

    Attributes:
        label_selector, field_selector: the selectors; empty for all objects.
        resource_version: the requested resource version; None if there is none.
        match: how the resource version must match: ``Exact``, ``NotOlderThan`` or empty.
        limit: the maximum number of objects on a page; 0 for all.
        continue_token: the token of the page, or empty.
        timeout_seconds: the timeout of a watch.
        bookmarks: whether a watch sends bookmarks.
        send_initial_events: whether a watch starts with the existing objects; None for the default.
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
    """Options of a create, update or patch.

    Attributes:
        dry_run: whether to store nothing.
        manager: the name of the field manager.
        validation: what to do about unknown and repeated fields: ``Strict``, ``Warn`` or ``Ignore``.
        force: whether an apply takes ownership of conflicting fields.
        user: the user of the request; None for components of the cluster.
        query: the query of the request, for admission.
    """

    dry_run: bool = False
    manager: str = ""
    validation: str = "Warn"
    force: bool = False
    user: User | None = None
    query: Mapping[str, str] = _NO_QUERY


class DeleteOptions(msgspec.Struct):
    """Options of a deletion.

    Attributes:
        grace_seconds: the grace period; None for the object's default.
        uid, resource_version: the preconditions; None if there are none.
        propagation: ``Foreground``, ``Background``, ``Orphan`` or empty.
        orphan: the deprecated option orphanDependents; None if not set.
        dry_run: whether to delete nothing.
        user: the user of the request; None for components of the cluster.
        warnings: receives the warnings for the client.
    """

    grace_seconds: int | None = None
    uid: str | None = None
    resource_version: str | None = None
    propagation: str = ""
    orphan: bool | None = None
    dry_run: bool = False
    user: User | None = None
    warnings: list[str] = msgspec.field(default_factory=list)
