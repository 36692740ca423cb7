"""Request info: the verb and the resource, namespace, name and subresource that a request is about."""

from __future__ import annotations

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
